/**
 * Makes untrusted text safe for a terminal. A text from a node must not control the terminal of its
 * reader.
 */

// The pattern lists the allowed characters, because `\p{Cc}` and `\p{Bidi_Control}` would load
// tables that stay in memory.
/**
 * Matches control characters (C0 and C1), characters that change the direction of text, and
 * invisible ones: spaces and operators without width, and tags (U+E0000 to U+E007F, which
 * JavaScript writes as two characters).
 */
const STEERING =
  /\uDB40[\uDC00-\uDC7F]|[^ -~\xA0-\xAC\xAE-\u061B\u061D-\u200A\u200C-\u200D\u2010-\u2029\u202F-\u205F\u206A-\uFEFE\uFF00-\uFFFF]/g;

/**
 * Returns the text for a terminal. Tabs and line breaks become blanks, and other control characters
 * become the replacement character.
 */
export function printable(text: string): string {
  return text.replaceAll(STEERING, (char) => (/\s/.test(char) ? ' ' : '\uFFFD'));
}

/**
 * Returns the same JSON with escapes for all control characters, including those that
 * JSON.stringify does not escape.
 */
export function escapeSteering(json: string): string {
  return json.replaceAll(STEERING, (found) =>
    found
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
