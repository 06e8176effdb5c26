/** Tests the server of the hooks over real TLS connections: both protocols, recorded calls, and every refusal. */

import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  type CallerOptions,
  callHook,
  type Protocol,
  post,
} from '../../../../sandbox/cluster/hook-caller.ts';
import { fitting, schemaProblems } from '../../../../sandbox/cluster/hook-schema.ts';
import { OWN_PLANS } from '../../../../test/support/builders/machine-updates.ts';
import { captured } from '../../../../test/support/capi/captured.ts';
import { buildNodeCluster } from '../../../../test/support/capi/node-cluster.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../../test/support/clock/times.ts';
import {
  createAuthority,
  issueClient,
  issueServer,
  type KeyPair,
  validFrom,
} from '../../../../tools/controlplane/certs.ts';
import { HOOK_GROUP, type HookResponse } from '../../../api/capi/hooks.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { nodes, type Resource } from '../../../kube/resources.ts';
import { StatusError, TransportError } from '../../../kube/status-error.ts';
import { createMetrics } from '../../../runtime/metrics.ts';
import { encodePresence } from '../../../signal/agent-presence.ts';
import { AGENT_ANNOTATION } from '../../../signal/names.ts';
import { RefitError } from '../../../util/errors.ts';
import { silentLogger } from '../../../util/log.ts';
import { DEFAULT_LIMITS } from './connection-limits.ts';
import { type ServerOptions, startExtensionServer } from './extension-server.ts';
import { hookService } from './hook-service.ts';

const SUBJECT = { commonName: 'hooks' };
const VALIDITY = validFrom(Date.now());
const authority = createAuthority(SUBJECT, VALIDITY);
const presence = encodePresence({ version: '1.0.0', since: '2026-01-01T00:00:00Z' });
const NODE = { metadata: { name: 'n1', annotations: { [AGENT_ANNOTATION]: presence } } };
const PROTOCOLS: readonly Protocol[] = ['h2', 'http/1.1'];

let directory = '';
type ExtensionServer = Awaited<ReturnType<typeof startExtensionServer>>;
let server: ExtensionServer;
/** Answers each request for a Machine in place of the API server. */
let get: () => Promise<never> = async () =>
  await Promise.reject(new TransportError('connection refused'));
const clock = new FakeClock(T0);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-hooks-'));
  await writePair(issueFor('127.0.0.1'));
  server = await startExtensionServer(options());
});

afterAll(async () => {
  await server.close();
  await rm(directory, { recursive: true });
});

function issueFor(address: string): KeyPair {
  return issueServer(
    { subject: SUBJECT, key: authority.key },
    { dns: [], addresses: [address] },
    VALIDITY,
  );
}

/** Replaces the certificate as an operator does: writes whole files and renames them to their final names. */
async function writePair({ certificate, key }: KeyPair): Promise<void> {
  for (const [name, text] of Object.entries({
    'tls.crt': certificate,
    'tls.key': key,
    'ca.crt': authority.certificate,
  })) {
    await writeFile(join(directory, `${name}.new`), text);
    await rename(join(directory, `${name}.new`), join(directory, name));
  }
}

function options(more: Partial<ServerOptions['files']> = {}): ServerOptions {
  const listAll = async (resource: Resource) =>
    await Promise.resolve({ items: resource === nodes ? [NODE] : [] });
  const raw = async () => await Promise.resolve({ status: 200, body: '{"gitVersion":"v1.36.0"}' });
  const client = { get: async () => await get(), listAll, raw } as unknown as KubeClient;
  return {
    address: '127.0.0.1:0',
    files: { certificate: join(directory, 'tls.crt'), key: join(directory, 'tls.key'), ...more },
    callTimeoutMs: 10_000,
    answer: hookService({
      management: client,
      clusterOf: () => buildNodeCluster(client),
      source: { url: 'https://example.com/{version}' },
      readText: async () => await Promise.resolve(''),
      callUpdater: async () => await Promise.reject(new Error('there is no updater')),
      replaceStuck: async () => await Promise.resolve(''),
      owners: OWN_PLANS,
      rulesOf: async () => await Promise.resolve({ drainSeconds: 0 }),
      clock,
      log: silentLogger,
      tell: async () => await Promise.resolve(),
    }),
    log: silentLogger,
  };
}

function caller(protocol: Protocol, to: ExtensionServer = server): CallerOptions {
  return {
    url: `https://127.0.0.1:${to.address.port}`,
    authority: authority.certificate,
    protocol,
  };
}

test('calls are counted by hook and outcome', async () => {
  const metrics = createMetrics();
  const own = await startExtensionServer({
    ...options(),
    metrics,
    limits: { ...DEFAULT_LIMITS, bodyBytes: 100 },
  });
  onTestFinished(async () => await own.close());
  const to = caller('h2', own);
  await post(to, `/${HOOK_GROUP}/discovery`, '{}');
  for (const body of ['no JSON', '{}', ' '.repeat(101)])
    await post(to, `/${HOOK_GROUP}/updatemachine/update-machine`, body);
  await post(to, '/other', '{}');
  const { body } = await metrics.expose();
  expect(
    body.split('\n').filter((line) => line.startsWith('refit_hook_duration_seconds_count')),
  ).toEqual([
    'refit_hook_duration_seconds_count{hook="Discovery",outcome="Success"} 1',
    'refit_hook_duration_seconds_count{hook="UpdateMachine",outcome="Failure"} 2',
    'refit_hook_duration_seconds_count{hook="UpdateMachine",outcome="413"} 1',
  ]);
});

describe.each(PROTOCOLS)('over %s', (protocol) => {
  test('the discovery response lists exactly three hooks, each with failurePolicy Fail', async () => {
    const { path, request } = captured('discovery');
    const { status, body } = await post(caller(protocol), path, JSON.stringify(request));
    expect(status).toBe(200);
    const requestHook = (hook: string): object => ({ apiVersion: HOOK_GROUP, hook });
    expect(JSON.parse(body)).toEqual({
      apiVersion: HOOK_GROUP,
      kind: 'DiscoveryResponse',
      status: 'Success',
      handlers: [
        {
          name: 'can-update-machine',
          requestHook: requestHook('CanUpdateMachine'),
          timeoutSeconds: 10,
          failurePolicy: 'Fail',
        },
        {
          name: 'can-update-machineset',
          requestHook: requestHook('CanUpdateMachineSet'),
          timeoutSeconds: 10,
          failurePolicy: 'Fail',
        },
        {
          name: 'update-machine',
          requestHook: requestHook('UpdateMachine'),
          timeoutSeconds: 20,
          failurePolicy: 'Fail',
        },
      ],
    });
  });

  test.each([
    [
      'canupdatemachine-1',
      { kind: 'CanUpdateMachineResponse', machinePatch: expect.anything() as unknown },
    ],
    [
      'canupdatemachine-2',
      { kind: 'CanUpdateMachineResponse', machinePatch: expect.anything() as unknown },
    ],
    [
      'canupdatemachineset',
      { kind: 'CanUpdateMachineSetResponse', machineSetPatch: expect.anything() as unknown },
    ],
    ['updatemachine-cp-init', { kind: 'UpdateMachineResponse', retryAfterSeconds: 2 }],
    ['updatemachine-cp-joined', { kind: 'UpdateMachineResponse', retryAfterSeconds: 2 }],
    ['updatemachine-worker-joined', { kind: 'UpdateMachineResponse', retryAfterSeconds: 2 }],
  ])('the captured call %s is understood', async (name, wanted) => {
    const { method, path, request } = captured(name);
    const refused = get;
    onTestFinished(() => {
      get = refused;
    });
    const machine = { metadata: { name }, status: { nodeRef: { name: 'n1' } } };
    if (name.startsWith('canupdate')) get = async () => await Promise.resolve(machine as never);
    const { status, body } = await post(caller(protocol), path, JSON.stringify(request), method);
    expect(status).toBe(200);
    expect(schemaProblems(request.kind, request)).toEqual([]);
    const answer: unknown = JSON.parse(body);
    expect(answer).toMatchObject({ apiVersion: HOOK_GROUP, status: 'Success', ...wanted });
    expect(schemaProblems(wanted.kind, answer)).toEqual([]);
  });

  const UPDATE = `/${HOOK_GROUP}/updatemachine/update-machine`;
  test.each([
    ['an unknown path', 'POST', '/', 404],
    ['an unknown handler', 'POST', `/${HOOK_GROUP}/updatemachine/other`, 404],
    ['another case', 'POST', UPDATE.replace('update-machine', 'Update-Machine'), 404],
    ['a path that is none', 'POST', '//', 404],
    ['a path with a detour', 'POST', `/x/..${UPDATE}`, 404],
    ['a path that goes on', 'POST', `${UPDATE}/`, 404],
    ['another method', 'GET', UPDATE, 405],
    ['another method below a prefix', 'GET', `/refit/hooks${UPDATE}`, 405],
    ['a prefix with a dot', 'POST', `/refit.dev${UPDATE}`, 404],
  ])('%s is refused', async (_name, method, path, code) => {
    expect((await post(caller(protocol), path, method === 'GET' ? '' : '{}', method)).status).toBe(
      code,
    );
  });

  test('a prefix of the ExtensionConfig changes nothing', async () => {
    const call = async (prefix: string) =>
      await post(caller(protocol), `${prefix}/${HOOK_GROUP}/discovery`, '{}');
    expect(await call('/refit/hooks_1')).toEqual(await call(''));
    expect((await call('/refit/hooks_1')).status).toBe(200);
  });

  test.each([
    ['no JSON', '{"desired":', 'the body is not JSON'],
    ['nothing', '', 'the body is not JSON'],
    [
      'no request',
      '{}',
      'invalid request: desired: Invalid input: expected object, received undefined',
    ],
    ['a list', '[]', 'invalid request: the whole: Invalid input: expected object, received array'],
  ])('a body with %s is answered with a Failure', async (_name, body, message) => {
    const answer = await post(caller(protocol), `${UPDATE}?timeout=10s`, body);
    expect(answer.status).toBe(200);
    expect(fitting('UpdateMachineResponse', JSON.parse(answer.body))).toEqual({
      apiVersion: HOOK_GROUP,
      kind: 'UpdateMachineResponse',
      status: 'Failure',
      message,
      retryAfterSeconds: 0,
    });
  });
});

test('a body of more than 20 MiB is not kept', async () => {
  const body = `"${'x'.repeat(20 * 1024 * 1024)}"`;
  expect((await post(caller('http/1.1'), `/${HOOK_GROUP}/discovery`, body)).status).toBe(413);
});

describe('UpdateMachine', () => {
  const { request } = captured('updatemachine-worker-joined');
  const ask = async (timeout?: string): Promise<HookResponse> =>
    await callHook(caller('http/1.1'), 'UpdateMachine', request, timeout);
  const message =
    'Internal error occurred: failed calling webhook "nodes.example.com": connection refused';
  const webhookFailure = new StatusError({
    kind: 'Status',
    code: 500,
    reason: 'InternalError',
    message,
  });
  const latePlugin = new TransportError('GET /x', {
    cause: new RefitError('REFIT_KUBECONFIG', 'no credential'),
  });

  test.each<[string, Error, object]>([
    [
      'no answer from the API server',
      new TransportError('reset'),
      { status: 'Success', retryAfterSeconds: 2 },
    ],
    [
      'an API server in trouble',
      refusal(500, 'InternalError'),
      { status: 'Success', retryAfterSeconds: 2 },
    ],
    ['a webhook that fails', webhookFailure, { status: 'Success', retryAfterSeconds: 2 }],
    ['a late credential plugin', latePlugin, { status: 'Success', retryAfterSeconds: 2 }],
    ['a missing right', refusal(403, 'Forbidden'), { status: 'Failure', retryAfterSeconds: 0 }],
    ['a missing kind', refusal(404, 'NotFound'), { status: 'Failure', retryAfterSeconds: 0 }],
  ])('%s', async (_name, error, wanted) => {
    get = async () => await Promise.reject(error);
    expect(await ask()).toMatchObject(wanted);
  });

  test('an API server that stays silent: the answer comes before the time is over', async () => {
    const asked = Promise.withResolvers<void>();
    get = async () => {
      asked.resolve();
      return await Promise.withResolvers<never>().promise;
    };
    const answer = ask('3s');
    await asked.promise;
    await clock.advance(2500);
    expect(await answer).toMatchObject({
      status: 'Success',
      message: 'waiting for the API server or an updater: no answer in time',
      retryAfterSeconds: 2,
    });
  });
});

test.each(['TLSv1', 'TLSv1.1'] as const)('%s is refused', async (version) => {
  const { port } = server.address;
  const failed = Promise.withResolvers<Error>();
  const ciphers = 'DEFAULT@SECLEVEL=0';
  const socket = connectTls({
    port,
    host: '127.0.0.1',
    ca: authority.certificate,
    minVersion: version,
    maxVersion: version,
    ciphers,
  });
  socket
    .once('error', failed.resolve)
    .once('secureConnect', () => failed.reject(new Error('connected')));
  expect((await failed.promise).message).toMatch(/protocol version|unsupported protocol|alert/i);
  socket.destroy();
});

test('certificates that are replaced are used, and one that is broken is not', async () => {
  const fingerprint = async (): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const socket = connectTls({
      port: server.address.port,
      host: '127.0.0.1',
      ca: authority.certificate,
    });
    socket
      .once('error', reject)
      .once('secureConnect', () => resolve(socket.getPeerCertificate().fingerprint256));
    return await promise.finally(() => socket.destroy());
  };
  const before = await fingerprint();
  // Other tests start their own servers with this certificate, so the test restores a valid pair at its end.
  onTestFinished(async () => await writePair(issueFor('127.0.0.1')));
  await writeFile(join(directory, 'tls.crt'), 'no certificate');
  expect(await fingerprint()).toBe(before);
  await writePair(issueFor('127.0.0.1'));
  await expect.poll(fingerprint).not.toBe(before);
});

test('with an authority for clients nobody calls without its certificate', async () => {
  const mutual = await startExtensionServer(
    options({ clientAuthority: join(directory, 'ca.crt') }),
  );
  const client = issueClient(
    { subject: SUBJECT, key: authority.key },
    { commonName: 'manager' },
    VALIDITY,
  );
  const foreignTarget = issueClient(
    { subject: SUBJECT, key: createAuthority(SUBJECT, VALIDITY).key },
    { commonName: 'x' },
    VALIDITY,
  );
  try {
    for (const protocol of PROTOCOLS) {
      const to = caller(protocol, mutual);
      await expect(callHook(to, 'Discovery', {})).rejects.toThrow();
      await expect(callHook({ ...to, client: foreignTarget }, 'Discovery', {})).rejects.toThrow();
      expect((await callHook({ ...to, client }, 'Discovery', {})).status).toBe('Success');
    }
  } finally {
    await mutual.close();
  }
});

test.each([
  ['a certificate that is missing', { certificate: '/nowhere/tls.crt' }, 'REFIT_FILE'],
  ['an authority that is missing', { clientAuthority: '/nowhere/ca.crt' }, 'REFIT_FILE'],
])('%s: it does not start, and says why', async (_name, files, code) => {
  await expect(startExtensionServer(options(files))).rejects.toMatchObject({ code });
});

test('an authority without a certificate would refuse every caller: it does not start, and says why', async () => {
  const clientAuthority = join(directory, 'tls.key');
  await expect(startExtensionServer(options({ clientAuthority }))).rejects.toThrow(
    'has no certificate in PEM',
  );
});

test.each(['nonsense', '192.0.2.1:1'])(
  'the address %s: it does not start, and says why',
  async (address) => {
    await expect(startExtensionServer({ ...options(), address })).rejects.toMatchObject({
      code: 'REFIT_USAGE',
    });
  },
);

function refusal(code: number, reason: string): StatusError {
  return new StatusError({ kind: 'Status', code, reason, message: reason });
}
