/**
 * Refuses the requests that a real API server hands on to the kubelet of a pod: logs, commands and ports. No kubelet
 * runs here, so no pod has a container that could answer.
 */
import { isRecord } from '../../src/util/json.ts';
import { ApiFailure, badRequest } from './failure.ts';
import type { ApiObject } from './store.ts';

export const POD_STREAMS: ReadonlySet<string> = new Set([
  'attach',
  'exec',
  'log',
  'portforward',
  'proxy',
]);

/** A pod without a node gets the words of a real API server. */
export function streamFailure({ metadata: { name }, spec }: ApiObject): ApiFailure {
  const node = isRecord(spec) ? spec['nodeName'] : undefined;
  if (typeof node !== 'string' || node === '')
    return badRequest(`pod ${name} does not have a host assigned`);
  const message = `pod ${name} has no running container and no logs, because this API server in memory starts no containers`;
  return new ApiFailure(501, 'NotImplemented', message);
}
