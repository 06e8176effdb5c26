/**
 * A shop on the workers of a stand-in cluster, and a server that measures the shop and answers as Prometheus does. Each
 * worker runs one pod of the shop, and each pod calls all other pods. The release under test loses the calls between
 * two nodes that both run it, so the first upgraded node looks healthy.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Host } from '../hosts/host.ts';

export interface Shop {
  /** The URL that a health check of kind `metrics` queries. */
  readonly url: string;
  stop(): Promise<void>;
}

/** The query of the health check. The server returns the error rate for every query. */
export const ERROR_RATE = 'sum(rate(shop_errors_total[1m])) / sum(rate(shop_calls_total[1m]))';

/** Returns the share of the calls that fail, from the versions that the nodes of the pods run. */
export function errorRate(versions: readonly string[], release: string): number {
  const calls = versions.length * (versions.length - 1);
  const upgraded = versions.filter((version) => version === release).length;
  return calls === 0 ? 0 : (upgraded * Math.max(0, upgraded - 1)) / calls;
}

/** Starts the server on a free port of the loopback interface. For each answer it asks the workers which version they run now. */
export async function startShop(
  workers: readonly Pick<Host, 'version'>[],
  release: string,
): Promise<Shop> {
  const answer = async (): Promise<object> => {
    // A node that restarts has been drained, so it runs no pod of the shop.
    const asked = await Promise.allSettled(workers.map(async (worker) => await worker.version()));
    const versions = asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    const rate = String(Number(errorRate(versions, release).toFixed(3)));
    const result = [{ metric: {}, value: [0, rate] }];
    return { status: 'success', data: { resultType: 'vector', result } };
  };
  const server = createServer((_request, response) => {
    void answer().then((body) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
