/** Reads the status socket: the service answers with its version, PID and role. */
import { http } from '../../util/http.ts';
import { isRecord } from '../../util/json.ts';

export interface ServiceStatus {
  readonly version: string;
  readonly pid: number;
  /** `controller` or `worker`; absent when it does not say. */
  readonly role?: string;
  /** True when pods run on this host; absent when it does not say. */
  readonly workloads?: boolean;
  /** `spec.api.address` of a controller's configuration. */
  readonly apiAddress?: string;
}

/** Limit for an answer; a real one has about 2 KiB. */
const MAX_ANSWER_BYTES = 1024 * 1024;

/** Asks once; rejects when no valid answer comes within `timeoutMs`. */
export async function askStatus(socketPath: string, timeoutMs: number): Promise<ServiceStatus> {
  const abort = AbortSignal.timeout(timeoutMs);
  const answer = await new Promise<string>((resolve, reject) => {
    const outgoing = http.request({
      socketPath,
      path: '/status',
      headers: { host: 'localhost' },
      agent: false,
      signal: abort,
    });
    outgoing.once('error', reject);
    outgoing.once('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('error', reject);
      response.on('data', (chunk: string) => {
        text += chunk;
        if (text.length > MAX_ANSWER_BYTES) response.destroy(new Error('the answer is too long'));
      });
      response.on('end', () => {
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`the status socket answered ${response.statusCode}`));
      });
    });
    outgoing.end();
  });
  return parseStatus(answer);
}

function parseStatus(text: string): ServiceStatus {
  const value: unknown = JSON.parse(text);
  if (!isRecord(value) || typeof value['Version'] !== 'string' || !Number.isInteger(value['Pid'])) {
    throw new Error('the status socket answered without Version and Pid');
  }
  const { Version: version, Pid: pid, Role: role, Workloads, SingleNode } = value;
  const apiAddress = apiAddressIn(value['ClusterConfig']);
  return {
    version,
    pid: pid as number,
    ...(typeof role === 'string' && role !== '' && { role }),
    // A single node runs workloads too, whatever its Workloads says.
    ...(typeof Workloads === 'boolean' && { workloads: Workloads || SingleNode === true }),
    ...(apiAddress !== undefined && { apiAddress }),
  };
}

/** Workers have no configuration, or an empty one. */
function apiAddressIn(config: unknown): string | undefined {
  const spec = isRecord(config) ? config['spec'] : undefined;
  const api = isRecord(spec) ? spec['api'] : undefined;
  const address = isRecord(api) ? api['address'] : undefined;
  return typeof address === 'string' && address !== '' ? address : undefined;
}
