/** Owns the client of the status socket: the one place where the service tells its version, its PID and its part in the cluster. */
import { http } from '../../util/http.ts';
import { isRecord } from '../../util/json.ts';

export interface ServiceStatus {
  readonly version: string;
  readonly pid: number;
  /** `controller` or `worker`, in the service's own words; absent where it does not say. */
  readonly role?: string;
  /** True where pods run on this host; absent where it does not say. */
  readonly workloads?: boolean;
  /** `spec.api.address` of the configuration that a controller runs with. */
  readonly apiAddress?: string;
}

/** Most bytes that are read of an answer; a real one has about 2 KiB. */
const MAX_ANSWER_BYTES = 1024 * 1024;

/** Asks once, HTTP/1.1 over the unix socket; rejects where no valid answer came within `timeoutMs`. */
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

/** Workers serve no configuration, or an empty one. */
function apiAddressIn(config: unknown): string | undefined {
  const spec = isRecord(config) ? config['spec'] : undefined;
  const api = isRecord(spec) ? spec['api'] : undefined;
  const address = isRecord(api) ? api['address'] : undefined;
  return typeof address === 'string' && address !== '' ? address : undefined;
}
