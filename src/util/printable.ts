/** Makes foreign text safe for a terminal: text from a node must not control the reader's screen. */

// Said by what is none of them: `\p{Cc}` and `\p{Bidi_Control}` would load tables that stay in memory.
/**
 * Control characters (C0 and C1), those that change the direction of text, and those that nobody sees: spaces and operators
 * without width, and tags (U+E0000 to U+E007F, which JavaScript writes as two characters).
 */
const STEERING =
  /\uDB40[\uDC00-\uDC7F]|[^ -~\xA0-\xAC\xAE-\u061B\u061D-\u200A\u200C-\u200D\u2010-\u2029\u202F-\u205F\u206A-\uFEFE\uFF00-\uFFFF]/g;

/** Tabs and line breaks become blanks, other control characters the replacement character. */
export function printable(text: string): string {
  return text.replaceAll(STEERING, (char) => (/\s/.test(char) ? ' ' : '\uFFFD'));
}

/** The same JSON, with the control characters that JSON.stringify leaves as they are written as escapes. */
export function escapeSteering(json: string): string {
  return json.replaceAll(STEERING, (found) =>
    found
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
