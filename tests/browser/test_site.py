"""The built site in a real browser, from `file://` and with no network: the article and the
fixture that uses every construct."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Route, sync_playwright

from graphgain.site.render import render
from site_stage import stage_fixture

pytestmark = pytest.mark.browser

CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 375, "height": 720}

BROKEN_IMAGES = """async () => {
  const images = [...document.images];
  for (const image of images) image.loading = "eager";
  const settled = (image) => new Promise((resolve) => {
    image.addEventListener("load", resolve);
    image.addEventListener("error", resolve);
    if (image.complete) resolve();
  });
  await Promise.all(images.map(settled));
  return images.filter((image) => image.naturalWidth === 0).map((image) => image.src);
}"""

# The themes whose figures the reader sees: one, if all is well.
VISIBLE_THEMES = """() => {
  const shown = [...document.querySelectorAll("img.only-light, img.only-dark")]
    .filter((image) => image.checkVisibility());
  return [...new Set(shown.map((i) => i.classList.contains("only-dark") ? "dark" : "light"))];
}"""

TOO_WIDE = """() => {
  if (document.documentElement.scrollWidth <= innerWidth) return [];
  const wide = [...document.querySelectorAll("body *")]
    .filter((e) => e.getBoundingClientRect().right > innerWidth && !e.closest("[tabindex], a"));
  const shown = wide.slice(0, 5).map((e) => e.outerHTML.slice(0, 120));
  return [document.documentElement.scrollWidth, ...shown];
}"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. On CI its absence is a failure, elsewhere a reason to skip."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        reason = "Chromium is not installed (Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=CHROMIUM_OPTIONS)
        yield launched
        launched.close()


@pytest.fixture(scope="session", params=["constructs", "article"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sites to look at."""
    if request.param == "article":
        built: Path = request.getfixturevalue("built_site")
        return built
    folder = tmp_path_factory.mktemp("constructs")
    render(stage_fixture(folder / "stage"), folder / "site", "pandoc")
    return folder / "site"


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A new tab that fails the test when it asks for anything outside the site.

    Parametrise indirectly with context options, such as `{"color_scheme": "dark"}`.
    """
    options = {"viewport": DESKTOP, **getattr(request, "param", {})}
    context = browser.new_context(**options)
    outside: list[str] = []

    def refuse(route: Route) -> None:
        outside.append(route.request.url)
        route.abort()

    context.route(lambda url: url.startswith(("http:", "https:")), refuse)
    yield context.new_page()
    context.close()
    assert outside == []


def pages(site: Path) -> list[Path]:
    found = sorted(site.rglob("*.html"))
    assert found
    return found


def test_pages_load_without_errors_and_with_every_image(site: Path, page: Page) -> None:
    problems: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            problems.append(f"{page.url}: {message.text}")

    page.on("console", note)
    page.on("pageerror", lambda error: problems.append(f"{page.url}: {error}"))
    for path in pages(site):
        page.goto(path.as_uri())
        problems += [f"{page.url}: {source}" for source in page.evaluate(BROKEN_IMAGES)]
    assert problems == []


def test_internal_links_resolve(site: Path, page: Page) -> None:
    anchors: dict[Path, set[str]] = {}
    links: set[tuple[Path, str]] = set()
    for path in pages(site):
        page.goto(path.as_uri())
        anchors[path] = set(page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)"))
        hrefs = page.evaluate("[...document.links].map(a => decodeURI(a.href))")
        links |= {(path, href) for href in hrefs if href.startswith("file:")}
    assert links
    broken = []
    for origin, href in sorted(links):
        file, _, fragment = href.removeprefix("file://").partition("#")
        target = Path(file)
        if not target.is_file() or (fragment and fragment not in anchors.get(target, set())):
            broken.append(f"{origin.relative_to(site)}: {href}")
    assert broken == []


def test_theme_switch_swaps_figures_and_is_remembered(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    switch = page.get_by_role("button", name="Dark theme")
    root = page.locator("html")
    assert root.get_attribute("data-theme") == "light"
    assert switch.get_attribute("aria-pressed") == "false"
    assert page.evaluate(VISIBLE_THEMES) == ["light"]
    light_paper = page.evaluate("getComputedStyle(document.body).backgroundColor")

    switch.click()
    assert root.get_attribute("data-theme") == "dark"
    assert switch.get_attribute("aria-pressed") == "true"
    assert page.evaluate(VISIBLE_THEMES) == ["dark"]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light_paper

    page.goto((site / "method.html").as_uri())
    assert root.get_attribute("data-theme") == "dark"
    page.get_by_role("button", name="Dark theme").click()
    assert root.get_attribute("data-theme") == "light"
    # The browser stores the choice after the click has returned; a reload can be faster.
    for _ in range(50):
        page.reload()
        if root.get_attribute("data-theme") == "light":
            return
    pytest.fail("the choice was not remembered")


@pytest.mark.parametrize("page", [{"color_scheme": "dark"}], indirect=True)
def test_first_visit_follows_the_system(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    assert page.evaluate(VISIBLE_THEMES) == ["dark"]
    page.emulate_media(color_scheme="light")
    page.wait_for_function("document.documentElement.dataset.theme === 'light'")
    assert page.evaluate(VISIBLE_THEMES) == ["light"]


@pytest.mark.parametrize(
    "page",
    [{"color_scheme": "dark", "java_script_enabled": False}],
    indirect=True,
)
def test_without_scripts_the_theme_still_follows_the_system(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    first = page.locator("figure.fig").first
    assert first.locator("img.only-dark").is_visible()
    assert not first.locator("img.only-light").is_visible()
    assert not page.locator(".theme-switch").is_visible()


@pytest.mark.parametrize("page", [{"color_scheme": "dark"}], indirect=True)
def test_print_is_light_and_without_navigation(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    page.emulate_media(media="print")
    assert page.evaluate(VISIBLE_THEMES) == ["light"]
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    assert not page.locator(".site-header").is_visible()
    assert not page.locator(".toc").is_visible()


@pytest.mark.parametrize("page", [{"viewport": PHONE}], indirect=True)
def test_no_page_is_wider_than_a_phone(site: Path, page: Page) -> None:
    wide = {}
    for path in pages(site):
        page.goto(path.as_uri())
        if found := page.evaluate(TOO_WIDE):
            wide[str(path.relative_to(site))] = found
    assert wide == {}


@pytest.mark.parametrize("page", [{"viewport": PHONE}], indirect=True)
def test_contents_fold_on_a_phone(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    entry = page.locator(".toc a").first
    assert not entry.is_visible()
    page.locator(".toc summary").click()
    entry.click()
    assert not entry.is_visible()
    assert page.evaluate("location.hash") != ""


def test_skip_link_is_the_first_stop(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


@pytest.mark.parametrize(
    "page",
    [
        {"color_scheme": "light"},
        {"color_scheme": "dark"},
        {"color_scheme": "light", "viewport": PHONE},
    ],
    ids=["light", "dark", "phone"],
    indirect=True,
)
def test_accessibility(site: Path, page: Page) -> None:
    found = []
    for path in pages(site):
        page.goto(path.as_uri())
        page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
        for violation in Axe().run(page).response["violations"]:
            if violation["impact"] in {"serious", "critical"}:
                nodes = [node["html"][:160] for node in violation["nodes"][:3]]
                where = path.relative_to(site)
                found.append(f"{where}: {violation['id']}: {violation['help']} {nodes}")
    assert found == []
