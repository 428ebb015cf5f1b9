//! `config` holds what its reader expects.

use serde_json::Value;

use super::context::Context;
use crate::catalog::{ConfigField, ConfigKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::expression::Expression;
use crate::suggest::did_you_mean;

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    of_the_graph(context, found);
    for (place, component) in context.graph.components.iter().enumerate() {
        let Some(descriptor) = context.descriptor(place) else {
            continue;
        };
        let path = format!("components[{place}].config");
        let report = |finding: Diagnostic| finding.component(&component.id);
        for field in &descriptor.config {
            let fault = match component.config.get(&field.name) {
                Some(value) => fault(field, value),
                None if field.required => Some((
                    format!(
                        "`{}` demands the field `{}`",
                        component.type_name, field.name
                    ),
                    format!("add `{}`", field.name),
                )),
                None => None,
            };
            if let Some((message, fix)) = fault {
                let path = format!("{path}.{}", field.name);
                let finding = Diagnostic::new(Code::GraphValidationError, path, message);
                found.push(report(finding.fix(fix)));
            }
        }
        if let Err(error) = descriptor.for_config(&component.config) {
            let path = match error.field.as_str() {
                "" => format!("{path}.ports"),
                field => format!("{path}.ports.{field}"),
            };
            let finding = Diagnostic::new(Code::GraphValidationError, path, error.to_string());
            let fix = "write `ports: {inputs: [a], outputs: [b]}`";
            found.push(report(finding.fix(fix)));
        }
        for fault in
            context
                .catalog
                .check_config(&component.type_name, &component.id, &component.config)
        {
            let path = match fault.field.as_str() {
                "" => path.clone(),
                field => format!("{path}.{field}"),
            };
            let finding = Diagnostic::new(Code::GraphValidationError, path, fault.message);
            found.push(report(finding.fix(fault.fix)));
        }
        if descriptor.open_config {
            continue;
        }
        for key in component.config.keys() {
            let names = || descriptor.config.iter().map(|field| field.name.as_str());
            if names().all(|name| name != key) {
                let message = format!("`{}` has no field `{key}`", component.type_name);
                let fix = did_you_mean(key, names()).unwrap_or_else(|| "remove it".to_owned());
                let path = format!("{path}.{key}");
                let finding = Diagnostic::new(Code::GraphValidationError, path, message);
                found.push(report(finding.fix(fix)));
            }
        }
    }
}

/// The fields of `graph.config` that a run looks at.
fn of_the_graph(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let fields = [
        ConfigField::new("emit_health_events", ConfigKind::Bool),
        ConfigField::new("health_event_capacity", ConfigKind::Integer)
            .within(1.0, f64::from(u32::MAX)),
    ];
    for field in &fields {
        let value = context.graph.config.get(&field.name);
        if let Some((message, fix)) = value.and_then(|value| fault(field, value)) {
            let path = format!("graph.config.{}", field.name);
            found.push(Diagnostic::new(Code::GraphValidationError, path, message).fix(fix));
        }
    }
}

/// What is wrong with a value, and what to do.
fn fault(field: &ConfigField, value: &Value) -> Option<(String, String)> {
    let fits = match field.kind {
        ConfigKind::Bool => value.is_boolean(),
        ConfigKind::Integer => value.is_i64() || value.is_u64(),
        ConfigKind::Number => value.is_number(),
        ConfigKind::String | ConfigKind::Expression(_) => value.is_string(),
        ConfigKind::List => value.is_array(),
        ConfigKind::Map => value.is_object(),
        ConfigKind::Any => true,
    };
    if !fits {
        let wanted = match field.kind {
            ConfigKind::Bool => "true or false",
            ConfigKind::Integer => "a whole number",
            ConfigKind::Number => "a number",
            ConfigKind::String | ConfigKind::Expression(_) => "a string",
            ConfigKind::List => "a list",
            ConfigKind::Map => "a map",
            ConfigKind::Any => "anything",
        };
        let message = format!("`{}` has to be {wanted}", field.name);
        return Some((message, format!("write {wanted}")));
    }
    if let (ConfigKind::Expression(names), Some(source)) = (field.kind, value.as_str()) {
        let error = Expression::compile(source, names).err()?;
        let message = format!("{source:?} is no expression: {error}");
        let fix = "correct it; docs/components.md lists what expressions may have";
        return Some((message, fix.to_owned()));
    }
    if let Some(number) = value.as_f64() {
        if let Some(min) = field.min
            && number < min
        {
            let message = format!("`{}` is {number}, and less than {min}", field.name);
            return Some((message, format!("use {min} or more")));
        }
        if let Some(max) = field.max
            && number > max
        {
            let message = format!("`{}` is {number}, and more than {max}", field.name);
            return Some((message, format!("use {max} or less")));
        }
    }
    if let Some(text) = value.as_str()
        && !field.one_of.is_empty()
        && field.one_of.iter().all(|name| name != text)
    {
        let message = format!(
            "`{}` is {text:?}; allowed are: {}",
            field.name,
            field.one_of.join(", ")
        );
        let fix = did_you_mean(text, field.one_of.iter().map(String::as_str));
        return Some((
            message,
            fix.unwrap_or_else(|| "use one of these".to_owned()),
        ));
    }
    None
}
