/** Waits for the status socket and reads it: the service answers with its version, PID and role. */
import { existsSync, watch } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { basename, dirname } from 'node:path';
import { textIn } from '../../util/bounded-file.ts';
import { ifPossible } from '../../util/errors.ts';
import { http } from '../../util/http.ts';
import { defined, isRecord, isText } from '../../util/json.ts';

export interface ServiceStatus {
  readonly version: string;
  readonly pid: number;
  /** The role is `controller` or `worker`; absent if the service does not say it. */
  readonly role?: string;
  /** True if pods run on this host; absent if the service does not say it. */
  readonly workloads?: boolean;
  /** The value of `spec.api.address` in a controller's configuration. */
  readonly apiAddress?: string;
}

/** An answer may have at most this many bytes. A real answer has about 2 KiB. */
const MAX_ANSWER_BYTES = 1024 * 1024;

/** Asks the service for its status once. Rejects if no valid answer comes within `timeoutMs`. */
export async function askStatus(socketPath: string, timeoutMs: number): Promise<ServiceStatus> {
  const signal = AbortSignal.timeout(timeoutMs);
  const asked = {
    socketPath,
    path: '/status',
    headers: { host: 'localhost' },
    agent: false,
    signal,
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    http.get(asked, resolve).once('error', reject),
  );
  const text = await textIn(response, MAX_ANSWER_BYTES, 'the answer is too long');
  if (response.statusCode !== 200)
    throw new Error(`the status socket answered ${response.statusCode}`);
  const value: unknown = JSON.parse(text);
  if (!isRecord(value) || typeof value['Version'] !== 'string' || !Number.isInteger(value['Pid']))
    throw new Error('the status socket answered without Version and Pid');
  const { Version: version, Pid: pid, Role: role, Workloads, SingleNode } = value;
  // Workers have no configuration, or an empty configuration.
  const config = value['ClusterConfig'] as
    | { spec?: { api?: { address?: unknown } | null } | null }
    | null
    | undefined;
  const apiAddress = config?.spec?.api?.address;
  return defined({
    version,
    pid: pid as number,
    role: isText(role) ? role : undefined,
    // A single node also runs workloads, whatever its member Workloads says.
    workloads: typeof Workloads === 'boolean' ? Workloads || SingleNode === true : undefined,
    apiAddress: isText(apiAddress) ? apiAddress : undefined,
  });
}

/**
 * Calls `listener` when the socket appears. The returned function unsubscribes. Returns undefined if the socket exists
 * already, or if its directory cannot be watched. In these cases the caller must poll.
 */
export function watchForSocket(socket: string, listener: () => void): (() => void) | undefined {
  const watcher = ifPossible(() => watch(dirname(socket)));
  watcher?.on('error', listener);
  watcher?.on('change', (_, name) => {
    if (name === basename(socket)) listener();
  });
  // The watch begins before this check, so that no change is missed.
  if (watcher && !existsSync(socket)) return () => watcher.close();
  watcher?.close();
  return undefined;
}
