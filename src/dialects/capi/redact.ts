/** Owns what of a hook's body may stand in a log: bodies of joined machines carry bootstrap tokens and the contents of files. */
import type { Json } from '../../util/json.ts';

const SECRET = /token|password|secret|^content$|^data$|key$/i;

/** Names of objects are no secrets, but nobody needs them to tell one body from another. */
export function redacted(body: Json): Json {
  const text = JSON.stringify(body, (key, value: Json) =>
    SECRET.test(key) && typeof value === 'string' ? '(redacted)' : value,
  );
  return JSON.parse(text) as Json;
}
