--[[
Gives pandoc the few Quarto constructs that the article uses, so that one set of sources serves
both. Shortcodes are already expanded (graphgain.site.sources); this filter sees plain Markdown.

  ::: {#fig-x} … :::                 numbered figure, the last paragraph is its caption
  ::: {#tbl-x} … :::                 numbered table, caption above it
  @fig-x, @tbl-x, @sec-x             links that read "Figure 1", "Table 2", the section's title
  ::: {.callout-note title="…"} :::  callouts (note, tip, important, warning, caution)
  links to .qmd and .ipynb           links to the pages made from them
  Jupyter cells and outputs          the classes that the stylesheet knows

Metadata set by graphgain.site.render: `root`, the way from this page to the site's root ("" or
"../"), and `pages`, the sources that become pages.
]]

local KINDS = { fig = "Figure", tbl = "Table" }
local CALLOUTS = {
  note = "Note", tip = "Tip", important = "Important", warning = "Warning", caution = "Caution",
}
local LANGUAGES = {
  bash = "shell", c = "C", cpp = "C++", cuda = "CUDA C++", json = "JSON", python = "Python",
  yaml = "YAML",
}

local stringify = pandoc.utils.stringify
local root = ""
local labels = {}      -- identifier of a figure or table → "Figure 1"; of a section → its title
local names_used = {}  -- accessible names of scroll regions, which must differ

local function html(text) return pandoc.RawBlock("html", text) end

local function is_paragraph(block) return block and (block.t == "Para" or block.t == "Plain") end

-- Document-wide settings -------------------------------------------------------------------------

local MONTHS = {
  "January", "February", "March", "April", "May", "June", "July", "August", "September",
  "October", "November", "December",
}

local function author_names(author)
  if not author then return nil end
  local people = pandoc.utils.type(author) == "List" and author or { author }
  local names = pandoc.List()
  for _, person in ipairs(people) do
    local is_map = pandoc.utils.type(person) == "table"
    names:insert(stringify(is_map and person.name or person))
  end
  return names
end

-- A notebook has no front matter: its title is its first heading.
local function read_title(doc)
  local first = doc.blocks[1]
  if not doc.meta.title and first and first.t == "Header" and first.level == 1 then
    doc.meta.title = pandoc.MetaInlines(first.content)
    doc.blocks:remove(1)
  end
  doc.meta.pagetitle = stringify(doc.meta.title or "")
  return doc
end

local function read_settings(doc)
  local meta = doc.meta
  root = stringify(meta.root or "")
  local names = author_names(meta.author)
  if names then
    meta.author = names
    meta["author-line"] = table.concat(names, ", ")
  end
  if meta.date then
    local iso = stringify(meta.date)
    local year, month, day = iso:match("^(%d%d%d%d)-(%d%d)-(%d%d)$")
    if year then
      meta["date-iso"] = iso
      meta.date = string.format("%s %d, %s", MONTHS[tonumber(month)], tonumber(day), year)
    end
  end
  if meta.description then meta["description-meta"] = stringify(meta.description) end
  return doc
end

-- Jupyter ----------------------------------------------------------------------------------------

-- "#| key: value" lines at the top of a code cell are options for the renderer, not code.
local function take_cell_options(code)
  local options = {}
  while true do
    local key, value, rest = code:match("^#|%s*([%w-]+):%s*([^\n]*)\n?(.*)$")
    if not key then return options, code end
    options[key] = value:gsub('^"(.*)"$', "%1")
    code = rest
  end
end

local cell_count = 0

local function notebook_cell(div)
  if not div.classes:includes("cell") then return nil end
  if div.classes:includes("markdown") then return div.content end
  if not div.classes:includes("code") then return nil end
  cell_count = cell_count + 1
  local alt = "Output of code cell " .. cell_count
  div = div:walk {
    CodeBlock = function(block)
      if not block.classes:includes("python") then return nil end
      local options, code = take_cell_options(block.text)
      alt = options["fig-alt"] or alt
      if options.echo == "false" or code:match("^%s*$") then return {} end
      block.text = code
      return block
    end,
  }
  div = div:walk {
    Image = function(image)
      if #image.caption == 0 then image.caption = { pandoc.Str(alt) } end
      return image
    end,
    -- A data frame comes as raw HTML; as a table it is styled and scrolls like any other.
    RawBlock = function(raw)
      if raw.format == "html" and raw.text:match("<table") then
        return pandoc.read(raw.text, "html").blocks
      end
    end,
    Div = function(inner)
      if inner.classes:includes("output") then inner.attr = pandoc.Attr("", inner.classes) end
      return inner
    end,
  }
  div.attr = pandoc.Attr("", { "cell" })
  return div
end

-- Figures, tables, callouts ----------------------------------------------------------------------

local function unique_name(name)
  names_used[name] = (names_used[name] or 0) + 1
  return names_used[name] == 1 and name or name .. " (" .. names_used[name] .. ")"
end

-- Whatever may be wider than a phone scrolls in its own box, which the keyboard can reach too.
local function scroll_box(content, class, role, name)
  local attributes = { role = role, tabindex = "0", ["aria-label"] = unique_name(name) }
  return pandoc.Div(content, pandoc.Attr("", { class }, attributes))
end

local function natural_width(tbl)
  tbl.colspecs = tbl.colspecs:map(function(spec) return { spec[1], nil } end)
  return tbl
end

local function caption_and_body(div)
  local blocks = div.content:clone()
  local caption = pandoc.Inlines {}
  if #blocks > 1 and is_paragraph(blocks[#blocks]) then caption = blocks:remove().content end
  local label = pandoc.Span(labels[div.identifier] .. ".", { class = "label" })
  return pandoc.Inlines { label, pandoc.Space() } .. caption, blocks
end

-- An image in a figure opens alone when it is chosen; on a phone it is wider than the screen.
local function opening_image(image)
  return pandoc.Link({ image }, image.src, "", { class = "frame " .. table.concat(image.classes, " ") })
end

local function figure(div)
  local caption, blocks = caption_and_body(div)
  local body = blocks:map(function(block)
    if not is_paragraph(block) then return block end
    return pandoc.Plain(block.content:walk { Image = opening_image })
  end)
  return pandoc.Figure(body, { long = { pandoc.Plain(caption) } }, { id = div.identifier, class = "fig" })
end

local function numbered_table(div)
  local caption, blocks = caption_and_body(div)
  return {
    html('<figure id="' .. div.identifier .. '" class="tbl">'),
    html("<figcaption>"), pandoc.Plain(caption), html("</figcaption>"),
    scroll_box(blocks:walk { Table = natural_width }, "scroll", "region", labels[div.identifier]),
    html("</figure>"),
  }
end

local function callout(div, kind)
  local title = div.attributes.title and { pandoc.Str(div.attributes.title) }
  local body = div.content:clone()
  if not title and body[1] and body[1].t == "Header" then title = body:remove(1).content end
  title = title or { pandoc.Str(CALLOUTS[kind]) }
  local class = "callout callout-" .. kind
  local content = pandoc.Div(body, { class = "callout-body" })
  if div.attributes.collapse == "true" then
    return {
      html('<details class="' .. class .. '">'),
      html('<summary class="callout-title">'), pandoc.Plain(title), html("</summary>"),
      content, html("</details>"),
    }
  end
  return pandoc.Div({
    html('<p class="callout-title">'), pandoc.Plain(title), html("</p>"), content,
  }, pandoc.Attr(div.identifier, { "callout", "callout-" .. kind }, { role = "note" }))
end

local section = "this page"

local structure = {
  traverse = "topdown",
  Header = function(heading)
    section = stringify(heading)
    return nil
  end,
  Div = function(div)
    local kind = div.identifier:match("^(%a+)%-")
    if kind == "fig" and labels[div.identifier] then return figure(div), false end
    if kind == "tbl" and labels[div.identifier] then return numbered_table(div), false end
    for _, class in ipairs(div.classes) do
      local name = class:match("^callout%-(%a+)$")
      if CALLOUTS[name] then return callout(div, name) end
    end
    -- Our own scroll boxes (tables in callouts are met again on the way down).
    if div.classes:includes("scroll") then return div, false end
    return nil
  end,
  Table = function(tbl)
    return scroll_box({ natural_width(tbl) }, "scroll", "region", "Table in: " .. section), false
  end,
}

local function code_listing(block)
  local language = LANGUAGES[block.classes[1]] or block.classes[1] or "Text"
  local box = scroll_box({ block }, "code", "group", language .. " listing")
  return pandoc.Div({ box }, { class = "listing" })
end

-- Raw text outputs of cells are code blocks too, so listings come after all structure is known.
local listings = { CodeBlock = code_listing }

-- Numbers and references -------------------------------------------------------------------------

local function collect_labels(doc)
  local counts = { fig = 0, tbl = 0 }
  doc:walk {
    traverse = "topdown",
    Div = function(div)
      local kind = div.identifier:match("^(%a+)%-")
      if KINDS[kind] then
        counts[kind] = counts[kind] + 1
        labels[div.identifier] = KINDS[kind] .. "\u{a0}" .. counts[kind]
      end
    end,
    Header = function(heading)
      if heading.identifier:match("^sec%-") then
        labels[heading.identifier] = stringify(heading)
      end
    end,
  }
end

local function reference(cite)
  local links = pandoc.Inlines {}
  for index, citation in ipairs(cite.citations) do
    local label = labels[citation.id]
    if not label then return nil end
    if citation.mode == "SuppressAuthor" then label = label:match("%d+$") or label end
    if index > 1 then links:extend { pandoc.Str(","), pandoc.Space() } end
    links:insert(pandoc.Link(label, "#" .. citation.id, "", { class = "reference" }))
  end
  return links
end

-- Links, headings, images ------------------------------------------------------------------------

local function from_root(target)
  return target:sub(1, 1) == "/" and root .. target:sub(2) or target
end

local function link(el)
  if el.target:match("^%a[%w+.-]*:") then
    if el.target:match("^https?:") then el.attributes.rel = "noopener" end
    return el
  end
  local path, fragment = from_root(el.target):match("^([^#]*)(#?.*)$")
  path = path:gsub("%.qmd$", ".html"):gsub("%.ipynb$", ".html")
  el.target = path .. fragment
  return el
end

local function heading_anchor(heading)
  if heading.identifier == "" then return nil end
  local attributes = { ["aria-label"] = "Link to this section" }
  heading.content:insert(
    pandoc.Link({}, "#" .. heading.identifier, "", pandoc.Attr("", { "anchor" }, attributes)))
  return heading
end

local first_image = true

local function image_size(path)
  local ok, size = pcall(function()
    return pandoc.image.size(select(2, pandoc.mediabag.fetch(path)))
  end)
  return ok and size or nil
end

local function image(el)
  local alt = el.attributes["fig-alt"]
  if alt then
    el.caption = { pandoc.Str(alt) }
    el.attributes["fig-alt"] = nil
  end
  el.src = from_root(el.src)
  -- Known sizes keep the text from jumping while figures load.
  local size = not el.attributes.width and not el.src:match("^%a+:") and image_size(el.src)
  if size then
    el.attributes.width = tostring(math.floor(size.width + 0.5))
    el.attributes.height = tostring(math.floor(size.height + 0.5))
  end
  if not first_image then el.attributes.loading = "lazy" end
  first_image = false
  return el
end

function Pandoc(doc)
  doc = read_settings(doc)
  doc = read_title(doc:walk { Div = notebook_cell })
  collect_labels(doc)
  doc = doc:walk(structure)
  doc = doc:walk(listings)
  doc = doc:walk { Cite = reference, Link = link, Image = image }
  return doc:walk { Header = heading_anchor }
end
