/** Creates the KubeClient over HTTP. Each method is one call, and objects stay plain JSON. */
import type { Caller, KubeClient } from '../client.ts';
import type { ClusterConfig } from '../config/cluster-config.ts';
import type { RequesterOptions } from './call-sender.ts';
import type { CallOptions } from './client-calls.ts';
import { readsOver } from './client-reads.ts';
import { writesOver } from './client-writes.ts';
import { requesterTo } from './requester.ts';

export interface ClientOptions extends RequesterOptions, CallOptions {}

/** Returns a client for the connection. Dispose of it when it is no longer needed. */
export function createClient(
  config: ClusterConfig,
  options: ClientOptions = {},
): KubeClient & Disposable {
  return clientOver(requesterTo(config, options), options);
}

/** Returns a client that sends its calls with `caller`, and closes the caller when it is closed. */
export function clientOver(caller: Caller, options: ClientOptions = {}): KubeClient & Disposable {
  const close = (): void => caller.close();
  return {
    ...readsOver(caller, options),
    ...writesOver(caller, options),
    close,
    [Symbol.dispose]: close,
  };
}
