"use strict";

(() => {
  const root = document.documentElement;
  const remembered = () => {
    try {
      return localStorage.getItem("graphgain-theme");
    } catch {
      return null;
    }
  };

  // Theme switch: hidden without scripts, since it could do nothing there.
  const button = document.querySelector(".theme-switch");
  const show = (theme) => {
    root.dataset.theme = theme;
    button.setAttribute("aria-pressed", String(theme === "dark"));
  };
  show(root.dataset.theme);
  button.hidden = false;
  button.addEventListener("click", () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    show(theme);
    try {
      localStorage.setItem("graphgain-theme", theme);
    } catch {
      // Storage is off: the choice holds for this page only.
    }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (query) => {
    if (!remembered()) show(query.matches ? "dark" : "light");
  });

  // After the page has settled, fetch the figures of the other theme too: switching and
  // printing then need no further load.
  addEventListener("load", () => {
    setTimeout(() => {
      for (const image of document.querySelectorAll("img[loading=lazy]")) image.loading = "eager";
    }, 300);
  });

  // Paper cannot unfold anything.
  addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details.callout")) folded.open = true;
  });

  // Copy buttons.
  if (navigator.clipboard) {
    for (const block of document.querySelectorAll(".code")) {
      const copy = document.createElement("button");
      copy.type = "button";
      copy.className = "copy";
      copy.textContent = "Copy";
      copy.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(block.querySelector("code").textContent);
          copy.textContent = "Copied";
        } catch {
          copy.textContent = "Not allowed";
        }
        setTimeout(() => (copy.textContent = "Copy"), 1500);
      });
      block.before(copy);
    }
  }

  // Mark the section being read in the table of contents.
  const entries = new Map();
  for (const link of document.querySelectorAll(".toc a[href^='#']")) {
    const heading = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (heading) entries.set(heading, link);
  }
  const headings = [...entries.keys()];
  let marked = null;
  const mark = () => {
    const above = headings.filter((heading) => heading.getBoundingClientRect().top < 120);
    const link = entries.get(above.at(-1)) ?? null;
    if (link === marked) return;
    marked?.removeAttribute("aria-current");
    link?.setAttribute("aria-current", "true");
    marked = link;
  };
  let queued = false;
  const later = () => {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => {
      queued = false;
      mark();
    });
  };
  if (headings.length > 0) {
    addEventListener("scroll", later, { passive: true });
    mark();
  }

  // On a phone the contents fold again once an entry is chosen.
  document.querySelector(".toc ul")?.addEventListener("click", (event) => {
    if (event.target.closest("a") && !matchMedia("(min-width: 68rem)").matches) {
      event.target.closest("details").open = false;
    }
  });
})();
