/** Finds the name of the node that somebody probably meant when they wrote another name of its host. */
import { nearest } from './nearest.ts';

/**
 * Returns the known name that the host `name` probably has; undefined if none resembles it. Kubernetes writes names in
 * lower case, and a host may be known with its domain or without it.
 */
export function nearestHost(name: string, known: readonly string[]): string | undefined {
  return known.find((each) => isSameHost(each, name)) ?? misspelt(name, known);
}

/** Returns the name that resembles `name`. Another number is another node, and no wrong spelling. */
function misspelt(name: string, known: readonly string[]): string | undefined {
  const numbers = (each: string): string => each.replace(/\D+/g, ' ');
  return nearest(
    name,
    known.filter((each) => numbers(each) === numbers(name)),
  );
}

/** Returns true if the names differ only in upper and lower case, or if only one of them has a domain. */
function isSameHost(one: string, other: string): boolean {
  const known = one.toLowerCase();
  const asked = other.toLowerCase();
  return known === asked || known.startsWith(`${asked}.`) || asked.startsWith(`${known}.`);
}
