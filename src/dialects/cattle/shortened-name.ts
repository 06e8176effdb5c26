/** Owns names that must not be longer than 63 characters: those that are get cut, and an end that tells them apart. */
import { createHash } from 'node:crypto';

const MAX = 64;

/** The parts with `-` between them. What is cut never ends in `-` or `.` before its suffix. */
export function shortenedName(...parts: readonly string[]): string {
  const full = parts.join('-');
  if (full.length < MAX) return full;
  const digest = createHash('sha256').update(full).digest('hex');
  const cut = MAX - 7;
  const endsWell = /[a-z0-9]/.test(full.charAt(cut - 1));
  return endsWell ? `${full.slice(0, cut)}-${digest.slice(0, 5)}` : `${full.slice(0, cut - 1)}-${digest.slice(0, 6)}`;
}
