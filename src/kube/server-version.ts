/** Reads the version of an API server. */
import { isRecord, parseJson } from '../util/json.ts';
import { scalarText } from '../util/scalar-text.ts';
import type { KubeClient, RequestOptions } from './client.ts';

/** Resolves with the version that the API server reports, such as `v1.36.3`. Resolves with an empty text if it reports none. */
export async function readServerVersion(
  client: Pick<KubeClient, 'raw'>,
  options?: RequestOptions,
): Promise<string> {
  const about = parseJson((await client.raw('/version', options)).body);
  return isRecord(about) ? scalarText(about['gitVersion']) : '';
}
