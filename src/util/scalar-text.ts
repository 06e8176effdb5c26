/** Reads the text of a value whose type is unknown. */

/**
 * Returns a text, a number or a boolean as text, and an empty text for everything else. `String` would throw for JSON
 * such as `{"toString":1}`, and for a list with more levels than fit on the stack.
 */
export function scalarText(value: unknown): string {
  const isScalar =
    typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
  return isScalar ? String(value) : '';
}
