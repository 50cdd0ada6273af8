import katex from "katex";
import type { KatexOptions } from "katex";
import "katex/dist/katex.min.css";

/** Draw every formula below `place`; one that cannot be read stays as it was written. */
export function drawMath(place: HTMLElement): void {
  for (const span of place.querySelectorAll<HTMLElement>("[data-math]")) {
    const source = span.textContent ?? "";
    const options: KatexOptions = { displayMode: span.dataset.display === "true", throwOnError: false, maxExpand: 200, maxSize: 20, trust: false };
    // it would colour what it cannot read by an attribute, which the content policy refuses
    if (katex.renderToString(source, options).startsWith('<span class="katex-error"')) span.classList.add("unreadable");
    else katex.render(source, span, options);
    delete span.dataset.math;
  }
}
