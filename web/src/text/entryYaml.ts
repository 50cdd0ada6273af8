/** One entry cut out of a conversation's YAML, exactly as it stands there. Pure. */

/** The lines of the entry at `index`; an empty text when there is none. */
export function entryYaml(yaml: string, index: number): string {
  const begin = /^entries:\n/m.exec(yaml);
  if (begin === null) return "";
  const rest = yaml.slice(begin.index + begin[0].length);
  const end = /^[^\s-]/m.exec(rest)?.index ?? rest.length;
  return rest.slice(0, end).split(/^(?=- )/m)[index] ?? "";
}
