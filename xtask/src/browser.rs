//! Tests of the report page in a browser: the numbers of the library, and pointer and key events.

use crate::shell::{Result, example, root};
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a browser may take to show a page: a headless one hangs at times.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Writes a page, opens it in a browser and compares what it shows. Is skipped with a message if there is no browser.
pub fn test() -> Result {
    let folder = root().join("target/page");
    example("page").arg(&folder).run()?;
    let Some(browser) = find() else {
        println!(
            "skipped: no Chromium on the PATH, so the page was not opened (Debian has one: apt install chromium)"
        );
        return Ok(());
    };
    let expected = expected(&folder)?;
    let page = folder.join("page.html");
    let browser = Browser { program: browser, folder };
    shows_the_numbers(&browser, &page, &expected)?;
    answers_pointer_and_keys(&browser, &page, &expected)?;
    for less in ["nothing.html", "plan.html", "idle.html"] {
        has_no_error(&browser.open(&page.with_file_name(less), "#at=peak&step=1")?)?;
    }
    shows_its_errors(&browser, &page)?;
    println!("the page shows the numbers of the library and handles pointer and key events");
    Ok(())
}

fn find() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    names.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file()))
}

/// What the page must show, by name.
struct Expected(HashMap<String, String>);

impl Expected {
    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

fn expected(folder: &Path) -> Result<Expected> {
    let path = folder.join("expected.txt");
    let text = fs::read_to_string(&path).map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    Ok(Expected(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
}

struct Browser {
    program: PathBuf,
    folder: PathBuf,
}

impl Browser {
    /// The page's elements once its scripts have run.
    fn open(&self, page: &Path, fragment: &str) -> Result<String> {
        let profile = self.folder.join("browser");
        let output = self.folder.join("dom.html");
        let _ = fs::remove_dir_all(&profile);
        let file =
            File::create(&output).map_err(|e| format!("{} cannot be written: {e}", output.display()))?;
        // The sandbox does not work in containers, and the browser opens only the page written here.
        let mut child = Command::new(&self.program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-quic"])
            .args(["--window-size=1400,2400", "--virtual-time-budget=4000", "--dump-dom"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("file://{}{fragment}", page.display()))
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("{} could not be started: {e}", self.program.display()))?;
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
                break status;
            }
            if start.elapsed() > TIMEOUT {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{} did not show the page in time", self.program.display()));
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        if !status.success() {
            return Err(format!("{} failed ({status})", self.program.display()));
        }
        fs::read_to_string(&output).map_err(|e| format!("{} cannot be read: {e}", output.display()))
    }
}

/// The tag of the element with this id, from `<` to `>`.
fn tag<'a>(dom: &'a str, id: &str) -> Result<&'a str> {
    let place = dom.find(&format!("id=\"{id}\"")).ok_or_else(|| format!("the page has no {id}"))?;
    let start = dom[..place].rfind('<').unwrap_or(0);
    let end = dom[place..].find('>').map_or(dom.len(), |end| place + end);
    Ok(&dom[start..end])
}

fn attribute(dom: &str, id: &str, name: &str) -> Result<String> {
    let tag = tag(dom, id)?;
    let value = tag.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    value.map(str::to_owned).ok_or_else(|| format!("{id} has no {name}: {tag}"))
}

/// The content of an element that contains no element with the same tag.
fn inside<'a>(dom: &'a str, id: &str, kind: &str) -> Result<&'a str> {
    let tag = tag(dom, id)?;
    let start = tag.as_ptr().addr() - dom.as_ptr().addr() + tag.len() + 1;
    let rest = dom.get(start..).unwrap_or_default();
    Ok(rest.split(&format!("</{kind}>")).next().unwrap_or_default())
}

fn same(what: &str, found: &str, wanted: &str) -> Result {
    if found == wanted { Ok(()) } else { Err(format!("{what}: the page shows {found}, and it is {wanted}")) }
}

fn holds(what: &str, is: bool) -> Result {
    if is { Ok(()) } else { Err(what.to_owned()) }
}

fn has_no_error(dom: &str) -> Result {
    if tag(dom, "error")?.contains("hidden") && dom.contains("data-ready=\"yes\"") {
        return Ok(());
    }
    Err(format!("the page has an error: {}", inside(dom, "error", "div")?))
}

fn shows_the_numbers(browser: &Browser, page: &Path, expected: &Expected) -> Result {
    let dom = browser.open(page, "#at=peak")?;
    has_no_error(&dom)?;
    same("bytes at the peak", &attribute(&dom, "alive", "data-total")?, expected.get("peak"))?;
    same(
        "the sum of the live buffers at the peak",
        &attribute(&dom, "alive", "data-sum")?,
        expected.get("peak"),
    )?;
    same("live buffers at the peak", &attribute(&dom, "alive", "data-rows")?, expected.get("alive"))?;
    let largest = format!("data-bytes=\"{}\"", expected.get("largest"));
    holds("the largest buffer of the peak is not listed", dom.contains(&largest))?;
    holds("the moment is not called the peak", inside(&dom, "moment", "h3")?.contains("the peak"))?;
    let rectangles = dom.matches("class=\"buffer\"").count().to_string();
    same("the plan's buffers", &rectangles, expected.get("rectangles"))?;
    same("ops", &attribute(&dom, "times-table", "data-rows")?, expected.get("ops"))?;
    let planned = inside(&dom, "planned-table", "table")?;
    holds("planned and measured are not equal", planned.contains("equal") && !planned.contains("differs"))?;
    let curves = dom.matches("<polyline").count().to_string();
    // Loss and accuracy, the frontier and its bound.
    same("curves", &curves, "4")?;
    same("plans for budgets", &attribute(&dom, "budget-table", "data-rows")?, expected.get("budget_plans"))?;
    same("chosen plans", &dom.matches("class=\"dot chosen\"").count().to_string(), "1")?;
    let smallest = format!("data-bytes=\"{}\"", expected.get("budget"));
    holds("the smallest plan is not listed", inside(&dom, "budget-table", "table")?.contains(&smallest))?;
    // The title has a script in it, which must be text.
    holds("the title became a script", !dom.contains("<script>alert(1)"))?;
    holds("the title is not shown", inside(&dom, "title", "h1")?.contains("&lt;script&gt;alert(1)"))?;

    let dom = browser.open(page, &format!("#at={}", expected.get("inside")))?;
    has_no_error(&dom)?;
    let bytes = expected.get("inside_bytes");
    same("bytes inside a program", &attribute(&dom, "alive", "data-total")?, bytes)?;
    same("the sum inside a program", &attribute(&dom, "alive", "data-sum")?, bytes)?;
    same(
        "live buffers inside a program",
        &attribute(&dom, "alive", "data-rows")?,
        expected.get("inside_alive"),
    )?;
    holds("the step is not named", inside(&dom, "moment", "h3")?.contains("of train step: "))?;

    let dom = browser.open(page, "#step=2")?;
    has_no_error(&dom)?;
    same("the chosen step", &attribute(&dom, "plan-alive", "data-step")?, "2")?;
    let heading = inside(&dom, "plan-step", "h3")?;
    holds(
        "the step's heading is wrong",
        heading.starts_with(&format!("Step 2 of {}", expected.get("steps"))),
    )?;

    // Invalid values in the fragment are ignored.
    let dom = browser.open(page, "#at=yesterday&step=-3&plan=99")?;
    has_no_error(&dom)?;
    same("bytes", &attribute(&dom, "alive", "data-total")?, expected.get("peak"))
}

/// Dispatches moves, clicks, drags and keys; what the page shows after each is written into the page.
const INTERACTIONS: &str = r#"
<script>
window.addEventListener("load", () => {
  const seen = (id, text) => document.body.append(make("pre", { id, textContent: text }));
  const plot = byId("memory-plot");
  const send = (target, type, part, name = MouseEvent, more = {}) => {
    const box = target.getBoundingClientRect();
    const where = { clientX: box.left + box.width * part, clientY: box.top + box.height / 2, bubbles: true, cancelable: true };
    target.dispatchEvent(new name(type, { ...where, ...more }));
  };
  byId("to-peak").click();
  const peak = byId("alive").dataset.total;
  send(plot, "mousemove", 0.5);
  seen("seen-tip", byId("tip").hidden ? "" : byId("tip").textContent);
  seen("seen-pinned", byId("alive").dataset.total === peak ? "kept" : "lost");
  send(plot, "mousedown", 0.3);
  send(plot, "mouseup", 0.3);
  seen("seen-click", window.location.hash + " " + byId("alive").dataset.total + " " + byId("alive").dataset.sum);
  const before = byId("moment").textContent;
  plot.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  seen("seen-key", byId("moment").textContent === before ? "stayed" : "moved");
  plot.dispatchEvent(new KeyboardEvent("keydown", { key: "p", bubbles: true }));
  seen("seen-peak", byId("alive").dataset.total);
  const picture = () => byId("memory-canvas").toDataURL();
  const whole = picture();
  send(plot, "mousedown", 0.2);
  send(plot, "mousemove", 0.5);
  send(plot, "mouseup", 0.5);
  const zoomed = picture();
  byId("zoom-all").click();
  seen("seen-zoom", (whole !== zoomed) + " " + (whole === picture()));
  plot.focus();
  send(plot, "wheel", 0.4, WheelEvent, { deltaY: -1 });
  seen("seen-wheel", String(whole !== picture()));
  byId("zoom-all").click();
  const buffer = document.querySelector(".buffer");
  send(buffer, "mousemove", 0.5);
  seen("seen-buffer", byId("tip").textContent);
  send(buffer, "click", 0.5);
  seen("seen-step", window.location.hash);
  byId("by-line").click();
  seen("seen-lines", byId("times-table").querySelector("th").textContent);
});
</script>
</body>"#;

fn answers_pointer_and_keys(browser: &Browser, page: &Path, expected: &Expected) -> Result {
    let copy = with(page, "interactions.html", INTERACTIONS)?;
    let dom = browser.open(&copy, "")?;
    has_no_error(&dom)?;
    let seen = |name: &str| inside(&dom, &format!("seen-{name}"), "pre");
    let tip = seen("tip")?;
    holds("nothing is shown beside the pointer", tip.contains("iB") && tip.contains("variable"))?;
    same("a pinned moment under a moving pointer", seen("pinned")?, "kept")?;
    let click: Vec<&str> = seen("click")?.split(' ').collect();
    holds("a click does not keep its moment", click.len() == 3 && click[0].starts_with("#at="))?;
    same("the sum of the live buffers where it was clicked", click[2], click[1])?;
    same("an arrow key", seen("key")?, "moved")?;
    same("the key p", seen("peak")?, expected.get("peak"))?;
    same("zoom by dragging, and back", seen("zoom")?, "true true")?;
    same("zoom by the wheel", seen("wheel")?, "true")?;
    let buffer = seen("buffer")?;
    for word in ["bytes", "read by", "from step", "live at step", "page.rs:"] {
        holds(&format!("a buffer's box does not say \"{word}\": {buffer}"), buffer.contains(word))?;
    }
    holds("a click on the plan chooses no step", seen("step")?.contains("step="))?;
    same("time by line", seen("lines")?, "line")
}

fn shows_its_errors(browser: &Browser, page: &Path) -> Result {
    let copy = with(page, "broken.html", "<script>noSuchFunction();</script>\n</body>")?;
    let dom = browser.open(&copy, "")?;
    let is_shown = !tag(&dom, "error")?.contains("hidden");
    holds(
        "an error in a script is not shown",
        is_shown && inside(&dom, "error", "div")?.contains("noSuchFunction"),
    )
}

/// A copy of the page with something before its end.
fn with(page: &Path, name: &str, ending: &str) -> Result<PathBuf> {
    let text = fs::read_to_string(page).map_err(|e| format!("{} cannot be read: {e}", page.display()))?;
    let copy = page.with_file_name(name);
    fs::write(&copy, text.replace("</body>", ending))
        .map_err(|e| format!("{} cannot be written: {e}", copy.display()))?;
    Ok(copy)
}
