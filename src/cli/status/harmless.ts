/** Makes a view safe to print. */
import { printable } from '../../util/printable.ts';

/**
 * Replaces control characters in all strings of a view, and removes undefined fields. Nodes write some of the strings, and their control
 * characters must not reach a terminal.
 */
export function harmless<T>(view: T): T {
  const clean = (_key: string, value: unknown): unknown =>
    typeof value === 'string' ? printable(value) : value;
  return JSON.parse(JSON.stringify(view), clean) as T;
}
