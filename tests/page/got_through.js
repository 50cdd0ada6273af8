// What stands in a document and should not, if nothing that was shown there was trusted.
() => {
  const found = [];
  const tell = (element, why) => found.push(`${why}: ${element.outerHTML.slice(0, 200)}`);
  const runs = /^[\s\x00-\x20]*(javascript|vbscript|data:text|file)/i;
  const leads = /^(href|src|action|formaction|xlink:href|data|srcset|poster|background|ping)$/i;
  for (const element of document.querySelectorAll("*"))
    for (const { name, value } of element.attributes)
      if (/^on/i.test(name) || (leads.test(name) && runs.test(value))) tell(element, name);

  const never = "iframe, object, embed, base, meta[http-equiv], template, marquee, video, audio, foreignObject, form[action]";
  for (const element of document.querySelectorAll(never)) tell(element, "element");
  for (const element of document.querySelectorAll("noscript:not(body > noscript)")) tell(element, "element");

  for (const element of document.querySelectorAll("script, link, img")) {
    const source = element.src || element.href || "";
    const isOwn = new URL(source, location.href).origin === location.origin || /^(blob:|data:image)/.test(source);
    if (source === "" || !isOwn) tell(element, "source");
  }
  const controls = ".text input, .text form, .text style, .text [style*=url], .text button:not([data-copy], .picture, .cite)";
  for (const element of document.querySelectorAll(controls)) tell(element, "control");
  return found;
};
