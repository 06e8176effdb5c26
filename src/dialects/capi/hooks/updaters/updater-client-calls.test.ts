/**
 * Proves what a call of an updater sends, and which answers are accepted. For hostile answers see
 * test/attacks/hostile-updater.test.ts.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { bundleOf } from '../../../../../test/support/builders/updater-sets.ts';
import { jsonPatch } from '../../../../../test/support/capi/triples.ts';
import {
  createAuthority,
  issueClient,
  issueServer,
  validFrom,
} from '../../../../../tools/controlplane/certs.ts';
import type { Updater } from '../../../../api/refit/updater-set.ts';
import { type UpdaterHook, updaterClient } from './updater-client.ts';

const subject = { commonName: 'updaters' };
const validity = validFrom(Date.now());
const authority = createAuthority(subject, validity);
const signing = { subject, key: authority.key };
const own = issueServer(signing, { dns: [], addresses: ['127.0.0.1'] }, validity);
const handlers = { canUpdateMachine: 'can', canUpdateMachineSet: 'can-set', updateMachine: 'do' };
const HOOKS = '/hooks.runtime.cluster.x-k8s.io/v1alpha1';

/** The answers by hook, which the path of the request names; `discovery` for the discovery request. */
let answers: Readonly<Record<string, unknown>> = {};
let status = 200;
let asked: { url: string; body: unknown }[] = [];
let callers: unknown[] = [];
let types: unknown[] = [];
const server = createServer(
  {
    cert: own.certificate,
    key: own.key,
    ca: authority.certificate,
    requestCert: true,
    rejectUnauthorized: false,
  },
  (request, response) => {
    void textOf(request).then((text) => {
      const url = request.url ?? '';
      asked.push({ url, body: JSON.parse(text) });
      types.push([request.method, request.headers['content-type']]);
      const { subject: caller } = (request.socket as TLSSocket).getPeerCertificate();
      callers.push(caller?.CN);
      const [, hook = ''] = /v1alpha1\/([a-z]+)/.exec(url) ?? [];
      const answer = answers[hook];
      response.statusCode = status;
      response.end(typeof answer === 'string' ? answer : JSON.stringify(answer ?? {}));
    });
  },
);
let url = '';
let port = 0;

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
  url = `https://127.0.0.1:${port}`;
});

beforeEach(() => {
  status = 200;
  asked = [];
  callers = [];
  types = [];
  answers = {
    updatemachine: { status: 'Success', retryAfterSeconds: 5 },
    canupdatemachine: { status: 'Success' },
    canupdatemachineset: { status: 'Success' },
  };
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function call(
  more: Partial<Updater> = {},
  hook: UpdaterHook = 'UpdateMachine',
  { certificates, abort = new AbortController().signal }: Partial<Calling> = {},
): Promise<unknown> {
  const updater = { name: 'files', url, caBundle: bundleOf(authority.certificate), ...more };
  return await updaterClient(certificates)(updater, hook, { desired: { a: 1 } }, abort);
}

interface Calling {
  readonly certificates: string;
  readonly abort: AbortSignal;
}

const urls = (): string[] => asked.map((each) => each.url);

describe('a request', () => {
  test('names its hook, and has the settings and the objects', async () => {
    const settings = { mode: 'fast' };
    const answer = await call({ handlers, settings, timeoutSeconds: 30 });
    expect(answer).toEqual({ status: 'Success', retryAfterSeconds: 5 });
    const body = {
      apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1',
      kind: 'UpdateMachineRequest',
      settings,
      desired: { a: 1 },
    };
    expect(asked).toEqual([{ url: `${HOOKS}/updatemachine/do?timeout=30s`, body }]);
    expect(types).toEqual([['POST', 'application/json']]);
  });

  test('has empty settings and three seconds if the updater has none', async () => {
    await call({ handlers }, 'CanUpdateMachineSet');
    expect(asked).toMatchObject([
      {
        url: `${HOOKS}/canupdatemachineset/can-set?timeout=3s`,
        body: { kind: 'CanUpdateMachineSetRequest', settings: {} },
      },
    ]);
  });

  test.each([
    ['', ''],
    ['/', ''],
    ['///', ''],
    ['/a//b/', '/a//b'],
  ])('goes below the path %j of the URL', async (path, prefix) => {
    await call({ handlers, url: `${url}${path}` });
    expect(urls()).toEqual([`${prefix}${HOOKS}/updatemachine/do?timeout=3s`]);
  });

  test('goes to the Service of the updater, at port 443 unless it has another', async () => {
    const service = { name: 'files', namespace: 'nowhere' };
    const to = async (more: object) =>
      await call({ handlers, timeoutSeconds: 1, service: { ...service, ...more } });
    await expect(to({})).rejects.toThrow('no answer from files.nowhere.svc: ');
    await expect(to({ port: 9443, path: '/ext' })).rejects.toThrow(
      'no answer from files.nowhere.svc:9443: ',
    );
  });
});

describe('handlers', () => {
  const handler = (name: string, hook: string) => ({
    name,
    requestHook: { apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1', hook },
  });
  const all = [handler('found-can', 'CanUpdateMachine'), handler('found-do', 'UpdateMachine')];
  const discovered = (found: unknown) => {
    answers = { ...answers, discovery: { status: 'Success', handlers: found } };
  };

  test('that are not in the UpdaterSet are discovered with each call', async () => {
    discovered(all);
    await call();
    await call({}, 'CanUpdateMachine');
    expect(urls()).toEqual([
      `${HOOKS}/discovery?timeout=3s`,
      `${HOOKS}/updatemachine/found-do?timeout=3s`,
      `${HOOKS}/discovery?timeout=3s`,
      `${HOOKS}/canupdatemachine/found-can?timeout=3s`,
    ]);
    expect(asked[0]?.body).toEqual({
      apiVersion: 'hooks.runtime.cluster.x-k8s.io/v1alpha1',
      kind: 'DiscoveryRequest',
    });
  });

  test('in the UpdaterSet come first', async () => {
    discovered(all);
    await call({ handlers: { updateMachine: 'mine' } }, 'CanUpdateMachine');
    await call({ handlers: { canUpdateMachine: 'mine' } }, 'CanUpdateMachine');
    expect(urls().filter((each) => !each.includes('discovery'))).toEqual([
      `${HOOKS}/canupdatemachine/found-can?timeout=3s`,
      `${HOOKS}/canupdatemachine/mine?timeout=3s`,
    ]);
  });

  test.each([
    ['none', undefined],
    ['null, as Go writes it', null],
    ['no handler for UpdateMachine', all.slice(0, 1)],
  ])('an updater that serves %s accepts no changes', async (_name, found) => {
    discovered(found);
    const given = { canUpdateMachine: 'mine' };
    await expect(call({ handlers: given }, 'CanUpdateMachine')).rejects.toThrow(
      'it serves no handler for UpdateMachine',
    );
    expect(urls()).toEqual([`${HOOKS}/discovery?timeout=3s`]);
  });

  test('the hook that is called must be served, too', async () => {
    discovered(all.slice(1));
    await expect(call({}, 'CanUpdateMachine')).rejects.toThrow(
      'it serves no handler for CanUpdateMachine',
    );
  });

  test('a discovery that is not valid names the field', async () => {
    discovered([handler('../other', 'UpdateMachine')]);
    await expect(call()).rejects.toThrow('its discovery is not valid: handlers');
  });
});

describe('an answer', () => {
  test('has patches; Go writes an empty object for no patch', async () => {
    const machinePatch = jsonPatch({ op: 'add', path: '/spec', value: 1 });
    const given = { status: 'Success', machinePatch, bootstrapConfigPatch: {} };
    answers = { canupdatemachine: given };
    expect(await call({ handlers }, 'CanUpdateMachine')).toEqual({
      ...given,
      bootstrapConfigPatch: null,
    });
  });

  test.each([[[]], [{ patch: '' }], ['']])('with %j for a patch is not valid', async (patch) => {
    answers = { canupdatemachine: { status: 'Success', machinePatch: patch } };
    await expect(call({ handlers }, 'CanUpdateMachine')).rejects.toThrow(
      'its answer is not valid: machinePatch',
    );
  });

  test('with another code than 200 is none, whatever it says', async () => {
    status = 503;
    await expect(call({ handlers })).rejects.toThrow(
      `it answered HTTP 503 to ${HOOKS}/updatemachine/do`,
    );
  });

  test('that is not JSON is none', async () => {
    answers = { updatemachine: '<html>' };
    await expect(call({ handlers })).rejects.toThrow('its answer is not JSON');
  });

  test('may have 4 MiB', async () => {
    answers = { updatemachine: ' '.repeat(4 * 1024 * 1024 + 1) };
    await expect(call({ handlers })).rejects.toThrow(
      `no answer from 127.0.0.1:${port}: its answer has more than 4194304 bytes`,
    );
  });

  test('is not awaited after an abort', async () => {
    await expect(
      call({ handlers }, 'UpdateMachine', { abort: AbortSignal.abort() }),
    ).rejects.toThrow('no answer in time');
  });
});

describe('a client certificate', () => {
  test('is read with each call, so that a replaced one is used at once', async () => {
    const certificates = await mkdtemp(join(tmpdir(), 'refit-updaters-'));
    try {
      await mkdir(join(certificates, 'mine'));
      for (const commonName of ['first', 'second']) {
        const { certificate, key } = issueClient(signing, { commonName }, validity);
        await writeFile(join(certificates, 'mine', 'tls.crt'), certificate);
        await writeFile(join(certificates, 'mine', 'tls.key'), key);
        await call({ handlers, clientCertificate: 'mine' }, 'UpdateMachine', { certificates });
      }
      await call({ handlers }, 'UpdateMachine', { certificates });
      expect(callers).toEqual(['first', 'second', undefined]);
    } finally {
      await rm(certificates, { recursive: true });
    }
  });

  test('needs a folder with certificates', async () => {
    await expect(call({ handlers, clientCertificate: 'mine' })).rejects.toThrow(
      'clientCertificate is mine, but --updater-certs is not set',
    );
    expect(asked).toEqual([]);
  });
});
