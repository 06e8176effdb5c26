/** Asks each API server of the cluster the same question, because they may differ. */
import type { ClusterConfig } from '../kube/config/cluster-config.ts';
import { endpointSlices } from '../kube/resources.ts';
import { serverAskerOf } from '../kube/transport/readyz.ts';
import { messageOf } from '../util/errors.ts';
import { type Asking, answer, type ReadResult, unknown } from './asking.ts';

const SERVER_TIMEOUT_MS = 10_000;
/** The metrics of an API server with many kinds have several MiB. */
const MOST_SERVER_BYTES = 64 * 1024 * 1024;

/** The answer of one API server. */
export interface AskedServer {
  /** The address of the API server, or the one in the kubeconfig. */
  readonly server: string;
  readonly answer: ReadResult<string>;
}

/**
 * Requests a path of each API server. If nobody says which API servers there are, the last answer is unknown, and stands
 * for those that were not asked. Rejects only if the command is interrupted.
 */
export type AskServers = (path: string) => Promise<readonly AskedServer[]>;

interface ServerParts {
  readonly config: ClusterConfig;
  readonly asking: Asking;
  /** The port of every API server. The default is the port in the EndpointSlices. */
  readonly apiPort?: number | undefined;
  readonly abort: AbortSignal;
}

/** Returns a function that requests a path of each API server that the Service of the API servers names. */
export function serversOf({ config, asking, apiPort, abort }: ServerParts): AskServers {
  const ask = serverAskerOf(config);
  const own = new URL(config.server).host;
  return async (path) => {
    const found = await serverAddresses(asking.list);
    if (found.kind === 'unknown' || found.value.length <= 1) {
      const asked = await asking.text(path);
      const reply: ReadResult<string> =
        asked.kind === 'answer' && asked.value === undefined
          ? unknown(`${path} is not there`)
          : (asked as ReadResult<string>);
      const others: AskedServer[] =
        found.kind === 'answer'
          ? []
          : [
              {
                server: `other than ${own}`,
                answer: unknown(`Refit cannot find out whether there is one (${found.why})`),
              },
            ];
      return [{ server: own, answer: reply }, ...others];
    }
    return await Promise.all(
      found.value.map(async ({ address, port }) => {
        const options = {
          path,
          port: apiPort ?? port,
          deadlineMs: SERVER_TIMEOUT_MS,
          mostBytes: MOST_SERVER_BYTES,
          abort,
        };
        return {
          server: address,
          answer: await replyOf(async () => await ask(address, options), abort),
        };
      }),
    );
  };
}

async function replyOf(
  ask: () => Promise<{ readonly status: number; readonly body: string }>,
  abort: AbortSignal,
): Promise<ReadResult<string>> {
  try {
    const { status, body } = await ask();
    if (status === 200) return answer(body);
    return unknown(status === 403 ? 'you may not read this path' : `it answered ${status}`);
  } catch (error) {
    abort.throwIfAborted();
    return unknown(messageOf(error));
  }
}

/** Resolves with the addresses of the API servers, which they write into the EndpointSlices of their Service. */
export async function serverAddresses(list: Asking['list']) {
  const slices = await list(endpointSlices);
  if (slices.kind === 'unknown') return slices;
  const own = slices.value.filter(
    ({ metadata: { namespace, labels = {} } }) =>
      namespace === 'default' && labels['kubernetes.io/service-name'] === 'kubernetes',
  );
  return answer(
    own.flatMap(({ endpoints = [], ports = [] }) =>
      (endpoints ?? []).flatMap(({ addresses }) =>
        addresses.map((address) => ({ address, port: ports[0]?.port })),
      ),
    ),
  );
}
