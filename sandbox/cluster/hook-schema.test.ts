/**
 * Tests what the schema of the hooks accepts: everything that real managers sent, and everything that Refit sends. Also
 * tests the faults that it finds.
 */
import { readdirSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { HOOK_GROUP, type HookName } from '../../src/api/capi/hooks.ts';
import { HANDLERS } from '../../src/dialects/capi/hooks/routes.ts';
import { updaterClient } from '../../src/dialects/capi/hooks/updaters/updater-client.ts';
import { bundleOf } from '../../test/support/builders/updater-sets.ts';
import { captured } from '../../test/support/capi/captured.ts';
import { createAuthority, issueServer, validFrom } from '../../tools/controlplane/certs.ts';
import { schemaProblems } from './hook-schema.ts';

const RECORDED = readdirSync(new URL('../../test/fixtures/capi', import.meta.url)).map((file) =>
  file.replace('.json', ''),
);
const HEAD = { apiVersion: HOOK_GROUP, status: 'Success' } as const;

test.each(RECORDED)(
  'the recording %s fits: the request, and the answer that was accepted',
  (name) => {
    const { request, exampleResponse } = captured(name);
    expect(schemaProblems(request.kind, request)).toEqual([]);
    expect(schemaProblems(request.kind.replace('Request', 'Response'), exampleResponse)).toEqual(
      [],
    );
  },
);

test.each<[string, object, string]>([
  [
    'UpdateMachineResponse',
    { retryAfterSeconds: 0.5 },
    'retryAfterSeconds: Invalid input: expected int',
  ],
  ['UpdateMachineResponse', {}, 'retryAfterSeconds: Invalid input: expected number'],
  ['UpdateMachineResponse', { retryAfterSeconds: 2 ** 31 }, 'retryAfterSeconds: Too big'],
  ['UpdateMachineResponse', { retryAfterSeconds: 0, status: 'Done' }, 'status: Invalid option'],
  [
    'UpdateMachineResponse',
    { retryAfterSeconds: 0, kind: 'CanUpdateMachineResponse' },
    'kind: Invalid input',
  ],
  ['CanUpdateMachineResponse', { patches: [] }, ': Unrecognized key: "patches"'],
  [
    'CanUpdateMachineResponse',
    { machinePatch: { patch: 'e30=' } },
    'machinePatch.patchType: Invalid option',
  ],
  [
    'CanUpdateMachineResponse',
    { machinePatch: { patchType: 'JSONPatch', patch: '[]' } },
    'machinePatch.patch: Invalid string',
  ],
  ['DiscoveryResponse', { handlers: [{ name: 'a' }] }, 'handlers.0.requestHook: Invalid input'],
])('%s with %j: found', (kind, more, problem) => {
  expect(schemaProblems(kind, { kind, ...HEAD, ...more })).toEqual([
    expect.stringContaining(problem),
  ]);
});

test('a Machine with a field that managers do not send: found', () => {
  const { request } = captured('updatemachine-worker-joined');
  const changed = JSON.parse(
    JSON.stringify(request).replace('"providerID"', '"providerId"'),
  ) as unknown;
  expect(schemaProblems('UpdateMachineRequest', changed)).toEqual([
    expect.stringContaining('"providerId"'),
  ]);
});

test('what Refit asks other updaters fits, too', async () => {
  const subject = { commonName: 'updater' };
  const validity = validFrom(Date.now());
  const authority = createAuthority(subject, validity);
  const own = issueServer(
    { subject, key: authority.key },
    { dns: [], addresses: ['127.0.0.1'] },
    validity,
  );
  const heard: { readonly kind: string }[] = [];
  const handlers = HANDLERS.map(({ name, hook }) => ({
    name,
    requestHook: { apiVersion: HOOK_GROUP, hook },
  }));
  const server = createServer({ cert: own.certificate, key: own.key }, (request, response) => {
    void json(request).then((body) => {
      heard.push(body as { readonly kind: string });
      response.end(JSON.stringify({ ...HEAD, handlers, retryAfterSeconds: 0 }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const updater = {
    name: 'other',
    url: `https://127.0.0.1:${port}`,
    caBundle: bundleOf(authority.certificate),
  };
  const calls: [Exclude<HookName, 'Discovery'>, string][] = [
    ['CanUpdateMachine', 'canupdatemachine-1'],
    ['CanUpdateMachineSet', 'canupdatemachineset'],
    ['UpdateMachine', 'updatemachine-cp-joined'],
  ];
  for (const [hook, name] of calls) {
    const { kind: _kind, ...body } = captured(name).request;
    await updaterClient(undefined)(updater, hook, body, new AbortController().signal);
  }
  expect(heard.map(({ kind }) => kind)).toEqual(
    calls.flatMap(([hook]) => ['DiscoveryRequest', `${hook}Request`]),
  );
  expect(heard.flatMap((body) => schemaProblems(body.kind, body))).toEqual([]);
});
