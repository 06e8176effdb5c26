/** Writes texts as words of a POSIX shell, for commands that a person copies. */

/** Returns the text as one word, always with quotes. */
export function quotedWord(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Returns the text as one word. A text that no shell changes stays as it is. */
export function shellWord(text: string): string {
  return /^[\w.:@/+=,-]+$/.test(text) ? text : quotedWord(text);
}
