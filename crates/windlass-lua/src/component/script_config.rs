//! What the configuration of a component says.

use std::sync::Arc;

use mlua::chunk::ChunkMode;
use mlua::{Lua, LuaOptions, StdLib};
use serde_json::Value as Json;
use windlass_core::hash::Fnv;
use windlass_graph::component::Failure;
use windlass_graph::model::Config;

use crate::error_text::text_of_error;
use crate::script::Script;

/// The bytes that a component may have, unless its configuration says otherwise.
const MEMORY_MB: usize = 64;

/// What the configuration says.
#[derive(Debug, Clone)]
pub(super) struct ScriptConfig {
    pub(super) script: Arc<Script>,
    pub(super) memory: usize,
    pub(super) seed: u64,
}

impl ScriptConfig {
    pub(super) fn read(id: &str, config: &Config) -> Result<ScriptConfig, Failure> {
        let text = |key: &str| config.get(key).and_then(Json::as_str);
        let script = match (text("script"), text("file")) {
            (Some(script), None) => Script::text(format!("{id}.lua"), script),
            (None, Some(file)) => {
                Script::file(file).map_err(|problem| Failure::new(problem.to_string()))?
            }
            (Some(_), Some(_)) => {
                return Err(Failure::new(
                    "`script` and `file` are both there: give one of them",
                ));
            }
            (None, None) => {
                return Err(Failure::new(
                    "there is no code: give `script`, or the name of a `file`",
                ));
            }
        };
        let memory = config.get("memory_mb").and_then(Json::as_u64);
        let seed = config.get("seed").and_then(Json::as_u64);
        Ok(ScriptConfig {
            script: Arc::new(script),
            memory: memory.map_or(MEMORY_MB, |megabytes| megabytes as usize) << 20,
            // Another for each component, and the same in every run.
            seed: seed.unwrap_or_else(|| Fnv::of(id.as_bytes())),
        })
    }
}

/// What Lua's compiler says about a script that it cannot compile. Nothing of the script runs.
pub(super) fn syntax_error(script: &Script) -> Option<String> {
    let lua = Lua::new_with(StdLib::NONE, LuaOptions::new()).ok()?;
    let chunk = lua.load(script.code()).set_name(script.chunk_name());
    let compiled = chunk.set_mode(ChunkMode::Text).into_function();
    let text = text_of_error(&compiled.err()?);
    text.lines().next().map(str::to_owned)
}
