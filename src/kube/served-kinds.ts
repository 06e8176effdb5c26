/** Reads which kinds an API server serves. */
import { isRecord, recordsIn } from '../util/json.ts';
import { scalarText } from '../util/scalar-text.ts';
import { clusterScoped, namespaced, type Resource } from './resources.ts';

/** Returns the resource of the kind; undefined if the list does not have it. `list` is the answer to a request for a group version. */
export function resourceIn(list: unknown, apiVersion: string, kind: string): Resource | undefined {
  const entries = recordsIn(isRecord(list) ? list['resources'] : undefined);
  // A name with a slash is the name of a subresource.
  const found = entries.find(
    (entry) => entry['kind'] === kind && !scalarText(entry['name']).includes('/'),
  );
  if (found === undefined) return undefined;
  const make = found['namespaced'] === true ? namespaced : clusterScoped;
  return make(apiVersion, kind, scalarText(found['name']));
}
