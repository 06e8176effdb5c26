/** Leaves out of a dump what may contain a password or a token. Nothing of it changes a decision. */
import { fromJson, toJson } from '../../engine/snapshot/turn-json.ts';
import { SIGNAL_DATA_ANNOTATION, SIGNAL_VERSION_ANNOTATION } from '../../signal/names.ts';
import { isRecord } from '../../util/json.ts';

const HIDDEN = '***';

/** The names of the members with the template of a pod, whose environment may contain passwords. */
const TEMPLATES = new Set(['template']);

/** The beginning of the keys of Refit's annotations. */
const OWN_PREFIX = 'upgrade.refit.dev/';
const SIGNALS = new Set([SIGNAL_DATA_ANNOTATION, SIGNAL_VERSION_ANNOTATION]);

/**
 * Matches a URL in a text. The text may be JSON, in which a backslash begins an escape. A backslash before a quotation
 * mark is not a part of the URL, because the text may be JSON inside of JSON.
 */
const URLS = /\b[a-z][a-z\d+.-]*:\/\/(?:[^\s"'<>\\]|\\(?!"))+/gi;

/**
 * Returns a copy without pods of hooks and checks, without the values of annotations that other software wrote, and
 * with the scheme and the host of each URL alone. The values of other annotations are hidden because other software may
 * write secrets there: K3s wrote its token into `k3s.io/node-args`.
 */
export function withoutSecrets<T>(value: T): T {
  // `toJson` writes sets and numbers without end as objects, which `hidden` leaves as they are.
  const plain: unknown = JSON.parse(toJson(value));
  return fromJson(JSON.stringify(plain, hidden)) as T;
}

function hidden(name: string, value: unknown): unknown {
  if (TEMPLATES.has(name)) return { spec: {} };
  if (name === 'annotations' && isRecord(value)) return ownAnnotations(value);
  return typeof value === 'string' ? value.replaceAll(URLS, hostOf) : value;
}

/** The keys stay, because a key alone can show of which kind a Node is. */
function ownAnnotations(annotations: Readonly<Record<string, unknown>>): object {
  const entries = Object.entries(annotations).map(([key, value]) => {
    const isOwn = key.startsWith(OWN_PREFIX) || SIGNALS.has(key);
    return [key, isOwn ? value : HIDDEN] as const;
  });
  return Object.fromEntries(entries);
}

function hostOf(text: string): string {
  const url = URL.parse(text);
  return url === null ? HIDDEN : `${url.protocol}//${url.host}`;
}
