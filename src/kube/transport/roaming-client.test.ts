/**
 * Tests which server gets requests while API servers come and go, and that only a certificate of
 * the configured name is trusted.
 */
import { createServer } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  type Script,
  type StubServer,
  sendJson,
  sendStatus,
  startStubServer,
} from '../../../test/faults/stub-server.ts';
import { createAuthority, issueServer, validFrom } from '../../../tools/controlplane/certs.ts';
import type { KubeClient } from '../client.ts';
import type { ClusterConfig } from '../config/cluster-config.ts';
import { endpointSlices, nodes, pathOf } from '../resources.ts';
import { describeProblem } from '../status-error.ts';
import { createRoamingClient } from './roaming-client.ts';

const SLICE = pathOf(endpointSlices, { namespace: 'default', name: 'kubernetes' });
const NAME = 'api.example.com';
const VALIDITY = validFrom(Date.now());
const SUBJECT = { commonName: 'ca' };
const ca = createAuthority(SUBJECT, VALIDITY);
const otherCa = createAuthority(SUBJECT, VALIDITY);

interface Served {
  readonly name?: string;
  readonly authority?: typeof ca;
  readonly mayLearn?: boolean;
  readonly script?: Script;
}

/**
 * Starts servers. Each returns its own number as the name of the Node, and all ports as the
 * endpoints.
 */
class Servers {
  readonly all: StubServer[] = [];

  async add({
    name = NAME,
    authority = ca,
    mayLearn = true,
    script,
  }: Served = {}): Promise<StubServer> {
    const names = { dns: [name], addresses: [] };
    const { certificate, key } = issueServer(
      { subject: SUBJECT, key: authority.key },
      names,
      VALIDITY,
    );
    const number = this.all.length;
    const server = await startStubServer(
      (request, response) => {
        if (request.url === SLICE && mayLearn) sendJson(response, 200, this.#slice());
        else if (request.url === SLICE) sendStatus(response, 403, 'Forbidden');
        else if (script) script(request, response);
        else sendJson(response, 200, { metadata: { name: `n${number}` } });
      },
      { cert: certificate, key },
    );
    this.all.push(server);
    onTestFinished(async () => await server[Symbol.asyncDispose]());
    return server;
  }

  /** The number of requests for the endpoints. */
  learned(): number {
    return this.all.flatMap(({ requests }) => requests).filter(({ url }) => url === SLICE).length;
  }

  #slice(): object {
    const ports = this.all.map(({ port }) => ({ port }));
    return { metadata: { name: 'kubernetes' }, endpoints: [{ addresses: ['127.0.0.1'] }], ports };
  }
}

function clientOf({ config }: StubServer, more: Partial<ClusterConfig> = {}): KubeClient {
  const trusting = {
    ...config,
    certificateAuthority: { text: ca.certificate },
    tlsServerName: NAME,
  };
  const client = createRoamingClient({ ...trusting, ...more });
  onTestFinished(() => client.close());
  return client;
}

async function askedOf(client: KubeClient): Promise<string> {
  return (await client.get(nodes, 'n')).metadata.name;
}

/** Returns a client that has learned the addresses of all servers. Then stops the first server. */
async function bereaved(servers: Servers, more?: Partial<ClusterConfig>): Promise<KubeClient> {
  const [first] = servers.all;
  if (first === undefined) throw new Error('no server');
  const client = clientOf(first, more);
  expect(await askedOf(client)).toBe('n0');
  await vi.waitFor(() => expect(servers.learned()).toBe(1), 60_000);
  await askedOf(client);
  await first[Symbol.asyncDispose]();
  return client;
}

test('when its server is gone, the same request is answered by another one', async () => {
  const servers = new Servers();
  for (let count = 0; count < 3; count++) await servers.add();
  const client = await bereaved(servers);
  expect(await askedOf(client)).toBe('n1');
  await servers.all[1]?.[Symbol.asyncDispose]();
  expect(await askedOf(client)).toBe('n2');
});

test.each<[string, Served]>([
  ['another name', { name: 'web.example.com' }],
  ['another authority', { authority: otherCa }],
])('a server whose certificate is from %s gets no request', async (_what, served) => {
  const servers = new Servers();
  await servers.add();
  const liar = await servers.add(served);
  await servers.add();
  const client = await bereaved(servers);
  expect(await askedOf(client)).toBe('n2');
  expect(liar.requests).toEqual([]);
  await servers.all[2]?.[Symbol.asyncDispose]();
  const problem: unknown = await askedOf(client).catch((error: unknown) => error);
  expect(describeProblem(problem).line).toContain('cannot reach');
  expect(liar.requests).toEqual([]);
});

test('one that accepts connections and stays silent does not hold requests up', async () => {
  const silent = createServer();
  onTestFinished(() => void silent.close());
  await new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve));
  const servers = new Servers();
  await servers.add();
  const { port } = silent.address() as { port: number };
  servers.all.push({ port, requests: [] } as unknown as StubServer);
  await servers.add();
  expect(await askedOf(await bereaved(servers))).toBe('n2');
});

test('a write that was sent is never sent to another server', async () => {
  const servers = new Servers();
  const first = await servers.add({
    script({ method, socket }, response) {
      if (method === 'PUT') socket.destroy();
      else sendJson(response, 200, { metadata: { name: 'n0' } });
    },
  });
  const other = await servers.add();
  const client = clientOf(first);
  await askedOf(client);
  await vi.waitFor(() => expect(servers.learned()).toBe(1), 60_000);
  await expect(client.replace(nodes, { metadata: { name: 'n' } })).rejects.toMatchObject({
    maybeApplied: true,
  });
  expect(other.requests).toEqual([]);
});

test('without the right to read the endpoints there is one server, asked no more', async () => {
  const servers = new Servers();
  const server = await servers.add({ mayLearn: false });
  const client = clientOf(server);
  await askedOf(client);
  // A refusal is repeated once, because a server that has just started refuses everything.
  await vi.waitFor(() => expect(servers.learned()).toBe(2), 60_000);
  await askedOf(client);
  expect(servers.learned()).toBe(2);
  await server[Symbol.asyncDispose]();
  await expect(askedOf(client)).rejects.toThrow('GET');
});

test('without verification the endpoints are not even asked for', async () => {
  const servers = new Servers();
  const client = clientOf(await servers.add(), { insecureSkipTlsVerify: true });
  await askedOf(client);
  await askedOf(client);
  expect(servers.learned()).toBe(0);
});
