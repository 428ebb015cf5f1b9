//! `windlass.random`: publishes numbers that look random and are the same in every run.

use serde_json::{Value, json};
use windlass_core::hash::{Fnv, SplitMix};
use windlass_graph::component::{
    Component, ConfigField, ConfigKind, Descriptor, Failure, Invocation, Output, Setup,
};
use windlass_graph::model::{BoundaryRole, Config};
use windlass_value::Payload;

use crate::settings::{Settings, fixed};

#[derive(Debug, Default)]
pub(crate) struct Random {
    generator: Generator,
    seed: u64,
    kind: Kind,
    output: Output<Payload>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Uniform { min: f64, max: f64 },
    Normal { mean: f64, deviation: f64 },
    Integer { min: i64, max: i64 },
}

impl Default for Kind {
    fn default() -> Self {
        Kind::Uniform { min: 0.0, max: 1.0 }
    }
}

const KINDS: [(&str, u8); 3] = [("uniform", 0), ("normal", 1), ("integer", 2)];

/// xoshiro256++, begun by splitmix64: the same numbers on every machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Generator([u64; 4]);

impl Generator {
    fn new(seed: u64) -> Generator {
        let mut seeds = SplitMix::new(seed);
        Generator([(); 4].map(|()| seeds.next_u64()))
    }

    fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// From 0, below 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From 0, below `below`; 0 is 2^64. Every number is as likely as any other.
    fn below(&mut self, below: u64) -> u64 {
        if below == 0 {
            return self.next();
        }
        // What is beyond the last whole multiple is drawn again.
        let beyond = below.wrapping_neg() % below;
        loop {
            let product = u128::from(self.next()) * u128::from(below);
            if product as u64 >= beyond {
                return (product >> 64) as u64;
            }
        }
    }

    /// Of the normal distribution, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

impl Kind {
    fn read(settings: Settings<'_>) -> Result<Kind, Failure> {
        let wrong = |what: String| Err(Failure::new(what));
        match settings.choice("kind", &KINDS)? {
            0 => {
                let (min, max) = (settings.number("min", 0.0)?, settings.number("max", 1.0)?);
                match min <= max && (max - min).is_finite() {
                    true => Ok(Kind::Uniform { min, max }),
                    false => wrong(format!(
                        "config.min is {min}, and more than config.max, {max}"
                    )),
                }
            }
            1 => {
                let mean = settings.number("mean", 0.0)?;
                let deviation = settings.number("deviation", 1.0)?;
                match deviation >= 0.0 {
                    true => Ok(Kind::Normal { mean, deviation }),
                    false => wrong(format!("config.deviation is {deviation}: use 0 or more")),
                }
            }
            _ => {
                let min = settings.integer("min")?.unwrap_or(0);
                let max = settings.integer("max")?.unwrap_or(100);
                match min <= max {
                    true => Ok(Kind::Integer { min, max }),
                    false => wrong(format!(
                        "config.min is {min}, and more than config.max, {max}"
                    )),
                }
            }
        }
    }

    fn draw(self, generator: &mut Generator) -> Payload {
        match self {
            Kind::Uniform { min, max } => Payload::Float(min + (max - min) * generator.unit()),
            Kind::Normal { mean, deviation } => {
                Payload::Float(mean + deviation * generator.normal())
            }
            Kind::Integer { min, max } => {
                let count = (max.wrapping_sub(min) as u64).wrapping_add(1);
                Payload::Int(min.wrapping_add(generator.below(count) as i64))
            }
        }
    }
}

impl Component for Random {
    fn describe() -> Descriptor {
        let number = |name| ConfigField::new(name, ConfigKind::Number);
        Descriptor::new()
            .output("out")
            .boundary(BoundaryRole::Input)
            .field(ConfigField::new("seed", ConfigKind::Integer))
            .field(ConfigField::new("kind", ConfigKind::String).one_of(KINDS.map(|kind| kind.0)))
            .field(number("min"))
            .field(number("max"))
            .field(number("mean"))
            .field(number("deviation"))
            .about("Publishes numbers that look random and are the same in every run.")
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let settings = Settings(setup.config());
        self.kind = Kind::read(settings)?;
        let seed = settings.integer("seed")?;
        self.seed = seed.map_or_else(|| Fnv::of(setup.id().as_bytes()), |seed| seed as u64);
        self.output = setup.output("out")?;
        self.reset()
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.generator = Generator::new(self.seed);
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let now = i64::try_from(invocation.now()).unwrap_or(i64::MAX);
        let drawn = self.kind.draw(&mut self.generator);
        invocation.publish_at(self.output, drawn, now);
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Option<Value>, Failure> {
        Ok(Some(json!(self.generator.0)))
    }

    fn restore(&mut self, snapshot: &Value) -> Result<(), Failure> {
        let words = snapshot.as_array().and_then(|words| {
            let words: Option<Vec<u64>> = words.iter().map(Value::as_u64).collect();
            <[u64; 4]>::try_from(words?).ok()
        });
        let wrong = || Failure::new("the snapshot is not one of windlass.random");
        self.generator = Generator(words.ok_or_else(wrong)?);
        Ok(())
    }

    fn validate_config(&self, _: &Config) -> Result<(), Failure> {
        fixed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // The first outputs of xoshiro256++ for the state 1, 2, 3, 4.
        let mut generator = Generator([1, 2, 3, 4]);
        let first = [(); 4].map(|()| generator.next());
        assert_eq!(
            first,
            [41943041, 58720359, 3588806011781223, 3591011842654386]
        );
    }

    #[test]
    fn the_whole_range_of_integers_can_be_drawn() {
        let kind = Kind::Integer {
            min: i64::MIN,
            max: i64::MAX,
        };
        let mut generator = Generator::new(1);
        let signs = [(); 64].map(|()| kind.draw(&mut generator).as_i64().unwrap() < 0);
        assert!(signs.contains(&true) && signs.contains(&false));
    }
}
