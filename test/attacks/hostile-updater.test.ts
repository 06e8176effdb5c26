/**
 * Tests Refit against an updater that an attacker controls: its answers can neither block Refit, nor fill its memory,
 * nor count as a completed update.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Updater } from '../../src/api/refit/updater-set.ts';
import { MACHINE_SHAPE } from '../../src/dialects/capi/hooks/can-update.ts';
import { applyPatches } from '../../src/dialects/capi/hooks/updaters/hook-patch.ts';
import { updaterClient } from '../../src/dialects/capi/hooks/updaters/updater-client.ts';
import { createAuthority, issueServer, validFrom } from '../../tools/controlplane/certs.ts';
import { bundleOf } from '../support/builders/updater-sets.ts';
import { buildTriple, jsonPatch } from '../support/capi/triples.ts';

const subject = { commonName: 'updaters' };
const validity = validFrom(Date.now());
const authority = createAuthority(subject, validity);
const names = { dns: [], addresses: ['127.0.0.1'] };
const own = issueServer({ subject, key: authority.key }, names, validity);
const handlers = {
  canUpdateMachine: 'can',
  canUpdateMachineSet: 'can-set',
  updateMachine: 'update',
};

let answer: (response: ServerResponse, request: IncomingMessage) => void = () => undefined;
let reached: string[] = [];
const server = createServer({ cert: own.certificate, key: own.key }, (request, response) => {
  reached.push(request.url ?? '');
  response.once('error', () => undefined);
  answer(response, request);
});
let updater: Updater;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const caBundle = bundleOf(authority.certificate);
  updater = {
    name: 'hostile',
    url: `https://127.0.0.1:${port}`,
    caBundle,
    handlers,
    timeoutSeconds: 1,
  };
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const call = async (hook: 'CanUpdateMachine' | 'UpdateMachine', to = updater) =>
  await updaterClient(undefined)(
    to,
    hook,
    { desired: buildTriple() },
    new AbortController().signal,
  );

const text = (body: string) => (response: ServerResponse) => void response.end(body);

test.each<[string, typeof answer, RegExp]>([
  [
    'an answer without end',
    (response) => {
      const writing = setInterval(() => response.write('x'.repeat(65_536)), 1);
      response.once('close', () => clearInterval(writing));
    },
    /more than|timeout|aborted/,
  ],
  ['no answer', () => undefined, /no answer from 127.0.0.1/],
  [
    'a redirect',
    (response) => void response.writeHead(307, { location: 'https://127.0.0.1:1/' }).end(),
    /answered HTTP 307/,
  ],
  [
    'another code that means well',
    (response) => void response.writeHead(204).end(),
    /answered HTTP 204/,
  ],
  [
    'another protocol, for which Node neither answers nor fails',
    (response) => void response.writeHead(101, { connection: 'upgrade', upgrade: 'other' }).end(),
    /no answer from 127.0.0.1/,
  ],
  ['no JSON', text('<html>'), /its answer is not JSON/],
  [
    'JSON that nests without end',
    text('['.repeat(100_000) + ']'.repeat(100_000)),
    /its answer is not/,
  ],
  ['nothing said', text('{}'), /its answer is not valid: status/],
  [
    'a status of its own',
    text('{"status":"Done","retryAfterSeconds":0}'),
    /its answer is not valid: status/,
  ],
  [
    'success without a time, which would count as done',
    text('{"status":"Success"}'),
    /retryAfterSeconds/,
  ],
  [
    'a negative time, which would count as done',
    text('{"status":"Success","retryAfterSeconds":-1}'),
    /retryAfterSeconds/,
  ],
  ['half a second', text('{"status":"Success","retryAfterSeconds":0.5}'), /retryAfterSeconds/],
])('%s: no valid answer, in time', async (_name, given, reason) => {
  answer = given;
  await expect(call('UpdateMachine')).rejects.toThrow(reason);
});

test.each([
  ['no time', '{"status":"Failure","message":"no disk"}'],
  ['a time that has no meaning', '{"status":"Failure","message":"no disk","retryAfterSeconds":-1}'],
])('a failure with %s is a failure, and keeps its message', async (_name, given) => {
  answer = text(given);
  expect(await call('UpdateMachine')).toEqual({ status: 'Failure', message: 'no disk' });
});

test('whether a change affects availability is passed on, if it is true or false', async () => {
  const told = async (body: string): Promise<unknown> => {
    answer = text(`{"status":"Success"${body}}`);
    return (await call('CanUpdateMachine')).affectsAvailability;
  };
  expect(await told(',"affectsAvailability":false')).toBe(false);
  expect(await told(',"affectsAvailability":true')).toBe(true);
  expect(await told('')).toBeUndefined();
  await expect(told(',"affectsAvailability":"false"')).rejects.toThrow(
    'its answer is not valid: affectsAvailability',
  );
});

test('control characters and long texts are not passed on', async () => {
  answer = text(
    JSON.stringify({
      status: 'Success',
      retryAfterSeconds: 1,
      message: `\u001b[2J${'x'.repeat(100_000)}`,
    }),
  );
  const { message = '' } = await call('UpdateMachine');
  expect(message).toHaveLength(300);
  expect(message).not.toContain('\u001b');
});

test('copies of copies fill no memory', async () => {
  const copies = Array.from({ length: 64 }, (_, index) => ({
    op: 'copy',
    from: '/spec',
    path: `/spec/a${index}`,
  }));
  answer = text(JSON.stringify({ status: 'Success', bootstrapConfigPatch: jsonPatch(...copies) }));
  const answered = await call('CanUpdateMachine');
  expect(() => applyPatches(MACHINE_SHAPE, buildTriple(), answered)).toThrow(
    'its JSON patch is not valid',
  );
});

test('a server with the certificate of another CA gets nothing', async () => {
  reached = [];
  const foreign = {
    ...updater,
    caBundle: bundleOf(createAuthority(subject, validity).certificate),
  };
  await expect(call('UpdateMachine', foreign)).rejects.toThrow('no answer from');
  expect(reached).toEqual([]);
});
