//! Spawn a task, await its output: `cargo run --example hello`.

#[windlass::main]
async fn main() -> windlass::Result<()> {
    let answer = windlass::spawn(async { 6 * 7 }).await?;
    println!("{answer}");
    Ok(())
}
