/** Writes JSON in few lines. */

/** The number of characters of the longest line that has more than one value. */
const WIDTH = 140;

/** Returns the JSON text with other line breaks: each list or object that fits into a line has one line. */
export function compactJson(text: string): string {
  return written(JSON.parse(text), '');
}

function written(value: unknown, indent: string): string {
  const line = JSON.stringify(value);
  if (indent.length + line.length <= WIDTH || typeof value !== 'object' || value === null)
    return line;
  const inner = `${indent} `;
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const members = Array.isArray(value)
    ? value.map((each: unknown) => written(each, inner))
    : Object.entries(value).map(([key, each]) => `"${key}":${written(each, inner)}`);
  return `${open}\n${members.map((member) => `${inner}${member}`).join(',\n')}\n${indent}${close}`;
}
