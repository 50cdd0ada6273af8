/** The files sent with a message: the server names each on a line of its own below the words. Pure. */

export interface Attachment {
  id: string;
  name: string;
  mime?: string;
}

/** Where a file is downloaded from, under the name it has here. */
export function addressOf({ id, name }: Attachment): string {
  return `/api/v1/files/${encodeURIComponent(id)}?${new URLSearchParams({ name })}`;
}

/** The words a person wrote, without the lines that name the files. */
export function wordsOf(content: string, files: readonly Attachment[]): string {
  let words = content;
  for (const file of files.toReversed()) {
    const line = lineOf(file);
    if (words === line) return "";
    if (words.endsWith(`\n${line}`)) words = words.slice(0, -line.length - 1);
  }
  return words;
}

/** The message that says `words` with `files`, as the server writes it. */
export function withFiles(words: string, files: readonly Attachment[]): string {
  return [words, ...files.map(lineOf)].join("\n");
}

function lineOf(file: Attachment): string {
  return `[file: ${file.name}]`;
}
