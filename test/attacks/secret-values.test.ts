/**
 * Tests that no message contains a value of a Secret. The author of a policy chooses which Secret the controller reads,
 * and which expression or server gets its values. Messages are in NodeRollouts, Events and logs, which more people may
 * read than the Secret.
 */
import { globSync, readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { createMember } from '../../src/dialects/capi/plan/workload-member.ts';
import { referenceProblems } from '../../src/engine/policy/references.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../src/engine/policy/rollout-policy.ts';
import { askHttp } from '../../src/health/ask-http.ts';
import { askResources } from '../../src/health/ask-resources.ts';
import { jsonFrom } from '../../src/health/ask-server.ts';
import type { HookRun } from '../../src/hooks/rules.ts';
import { askWebhook } from '../../src/hooks/webhook.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { readSecret } from '../../src/kube/read-secret.ts';
import { secrets } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { deliverer } from '../../src/notify/deliver.ts';
import { alertmanager } from '../../src/silences/alertmanager.ts';
import { channelMemory } from '../../src/updates/channel/follow-channel.ts';
import { systemClock as clock } from '../../src/util/clock.ts';
import { messageOf } from '../../src/util/errors.ts';
import { silentLogger } from '../../src/util/log.ts';
import { startStubServer } from '../faults/stub-server.ts';
import { startSmtpServer } from '../support/doubles/smtp-server.ts';

/** Long enough for a key of signatures, and with characters that base64 and URLs write in another way. */
const MARKER = 'marker/that?nobody+may&see';
const BASE64 = Buffer.from(MARKER).toString('base64');
const FORMS = [
  MARKER,
  encodeURIComponent(MARKER),
  BASE64.slice(0, 30),
  Buffer.from(MARKER).toString('hex'),
  'marker/that',
];
const KEYS = ['token', 'key', 'url', 'username', 'password', 'ca.crt', 'value'];
const NEVER = new AbortController().signal;

type Answer = { readonly status: number; readonly body: string };

function secretOf(value: string, keys: readonly string[] = KEYS): Answer {
  const data = Object.fromEntries(keys.map((key) => [key, Buffer.from(value).toString('base64')]));
  const object = { kind: 'Secret', apiVersion: 'v1', metadata: { name: 's' }, data };
  return { status: 200, body: JSON.stringify(object) };
}

const WHOLE = secretOf(MARKER).body;
const refused = (message: string): Answer => ({
  status: 500,
  body: JSON.stringify({ kind: 'Status', apiVersion: 'v1', code: 500, message }),
});

/** What the API server answers about the Secret. */
const ANSWERS: readonly (readonly [string, Answer])[] = [
  ['is cut off', { status: 200, body: WHOLE.slice(0, -9) }],
  ['is the bare value', { status: 200, body: MARKER }],
  ['has an error that quotes the value', refused(`cannot decode ${MARKER}`)],
  ['is a page of a proxy with the value', { status: 502, body: `<html>${MARKER}</html>` }],
  ['has values that no header may have', secretOf(`${MARKER}\n\u0001x`)],
  ['has the value under each key', secretOf(MARKER)],
  ['has a token', secretOf(MARKER, ['token', 'url', 'value'])],
  ['has a user with a password', secretOf(MARKER, ['username', 'password', 'key'])],
  ['has an authority that is no certificate', secretOf(MARKER, ['ca.crt', 'key'])],
];

interface Cluster {
  readonly client: KubeClient;
  readonly url: string;
}

const RUN: HookRun = {
  id: 'r',
  hook: {
    name: 'tell',
    when: 'beforePlan',
    timeoutMs: 1_000,
    action: { kind: 'webhook', url: '', secretName: 's' },
  },
  variables: {},
};
const MESSAGE = { id: 'm', policy: 'p', notes: [] };

/** Each reader of Secrets, with the file that reads. The result and the error are shown to people. */
const READERS: Readonly<
  Record<string, readonly [file: string, (of: Cluster, tools: Tools) => Promise<unknown>]>
> = {
  'any reader': [
    'src/kube/read-secret.ts',
    async ({ client }) => void (await readSecret({ client, namespace: 'n', name: 's' }, NEVER)),
  ],
  'an HTTP check': [
    'src/health/ask-server.ts',
    async ({ url }, tools) =>
      await askHttp({ kind: 'http', name: 'c', url, secretName: 's' }, tools, NEVER),
  ],
  'a check of a server with JSON': [
    'src/health/ask-server.ts',
    async ({ url }, tools) => await jsonFrom(new URL(url), 's', tools, NEVER),
  ],
  'a silence': [
    'src/health/ask-server.ts',
    async ({ url }, tools) => {
      const rule = { name: 'x', url, secretName: 's', matchers: [], lastsMs: 60_000 };
      const wanted = { rule, node: 'w', matchers: [], comment: 'c' };
      return await alertmanager({ ...tools, clock }).keep(wanted, NEVER);
    },
  ],
  'a check of the Secrets themselves': [
    'src/health/ask-resources.ts',
    async ({ client }) => {
      const expressions = [
        'int(object.data.token) > 0',
        'object.data.token',
        'object.data[object.data.token] == "x"',
        'object.data.token == "x"',
        'timestamp(object.data.token) == timestamp(object.data.token)',
        'object.data.token.matches(object.data.token + "(")',
      ];
      const kind = { kind: 'resources', apiVersion: 'v1', objectKind: 'Secret' } as const;
      const asked = expressions.map(async (expression) =>
        messageOf(
          await askResources(client, { ...kind, name: 'c', expression }, NEVER).then(
            (finding) => finding.message,
            (error: unknown) => error,
          ),
        ),
      );
      return await Promise.all(asked);
    },
  ],
  'a webhook': [
    'src/hooks/webhook.ts',
    async ({ url }, tools) =>
      await askWebhook({ ...tools, clock }, RUN, { kind: 'webhook', url, secretName: 's' }, NEVER),
  ],
  'receivers of messages': [
    'src/notify/secret-values.ts',
    async ({ url }, tools) => {
      const ref = { name: 's', key: 'token' };
      const common = { name: 'r', events: [] } as const;
      const smtp = { ...common, from: 'a@example.com', to: ['b@example.com'], isPlain: true };
      const send = deliverer({ ...tools, clock });
      await using relay = await startSmtpServer({
        hasAuth: true,
        answer: (line) => (line.startsWith('AUTH') ? quotedBySmtp(line) : undefined),
      });
      return await Promise.all([
        send({ ...common, type: 'Slack', address: { secret: ref } }, MESSAGE, NEVER),
        send({ ...common, type: 'Webhook', address: { url }, signingKey: ref }, MESSAGE, NEVER),
        send({ ...common, type: 'Matrix', server: url, room: '!r', token: ref }, MESSAGE, NEVER),
        send(
          { ...smtp, type: 'Email', server: `smtp://127.0.0.1:${relay.port}`, secretName: 's' },
          MESSAGE,
          NEVER,
        ),
      ]);
    },
  ],
  'the condition about the references of a policy': [
    'src/engine/policy/references.ts',
    async ({ url, client }, { namespace }) => {
      const templates = { rehearse: async () => await Promise.resolve() } as never;
      return await referenceProblems({ client, namespace, templates }, policyAt(url), 0, NEVER);
    },
  ],
  'the token of an update server': [
    'src/updates/channel/follow-channel.ts',
    async ({ url, client }, { environment }) => {
      const channels = channelMemory({
        client,
        environment,
        clock,
        userAgent: 'x',
        clusterInfo: undefined,
      });
      const schedule = { kind: 'periodic' };
      const settings = { server: url, channel: 'stable', schedule };
      return await channels.ask(settings as never, { version: 'v1', planState: '' }, NEVER);
    },
  ],
};

/** Returns the answer of a relay that refuses a login and quotes what was sent, as it was sent and decoded. */
function quotedBySmtp(line: string): string {
  const sent = line.split(' ').at(-1) ?? '';
  return `535 no ${line} ${Buffer.from(sent, 'base64')
    .toString()
    .replaceAll(/[^ -~]/g, ' ')}`;
}

/** Returns a policy that refers to the Secret in each way that policies know. */
function policyAt(url: string): RolloutPolicy {
  const action = { kind: 'webhook', url, secretName: 's' } as const;
  const secret = { name: 's', key: 'token' };
  const check = { kind: 'http', name: 'c', url, secretName: 's' } as const;
  return {
    ...DEFAULT_POLICY,
    notify: [{ name: 'r', events: [], type: 'Slack', address: { secret } }],
    silences: [{ name: 'x', url, secretName: 's', matchers: [], lastsMs: 60_000 }],
    hooks: [{ name: 'tell', when: 'beforePlan', timeoutMs: 1_000, action }],
    health: { checks: [check] },
  };
}

interface Tools {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Starts an API server with one Secret, and a server that quotes each request in each of its answers. */
async function start(answer: Answer): Promise<Cluster & { readonly tools: Tools }> {
  const quoting = await startStubServer(({ url, headers, rawHeaders, body }, response) => {
    const sent = (headers.authorization ?? '').replace(/^\w+ /, '');
    const known = [sent, ...Buffer.from(sent, 'base64').toString().split(':')];
    const forms = known.flatMap((each) => [
      each,
      encodeURIComponent(each.toWellFormed()),
      Buffer.from(each).toString('base64'),
      Buffer.from(each).toString('hex'),
    ]);
    const quoted = [...forms, url, ...rawHeaders, body].join(' ');
    response.writeHead(400).end(JSON.stringify({ error: quoted, message: quoted }));
  });
  const api = await startStubServer(({ url }, response) => {
    if (!url.includes('/secrets')) {
      const resources = [{ name: 'secrets', kind: 'Secret', namespaced: true }];
      response.end(JSON.stringify({ resources }));
      return;
    }
    const isList = !/secrets\/\w/.test(url);
    const body =
      isList && answer.body === WHOLE ? `{"items":[${WHOLE}],"metadata":{}}` : answer.body;
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(body);
  });
  const client = createClient(api.config, { userAgent: 'x' });
  onTestFinished(async () => {
    client.close();
    await api[Symbol.asyncDispose]();
    await quoting[Symbol.asyncDispose]();
  });
  const tools = { client, namespace: 'n', environment: {} };
  return { client, url: quoting.config.server, tools };
}

test.each(
  Object.entries(READERS).flatMap(([reader, [, read]]) =>
    ANSWERS.map(([what, answer]) => [reader, what, read, answer] as const),
  ),
)('%s shows no value of a Secret if the answer %s', async (_reader, _what, read, answer) => {
  const cluster = await start(answer);
  const said = await read(cluster, cluster.tools).then(
    (value) => JSON.stringify(value ?? ''),
    (error: unknown) => `${messageOf(error)} ${JSON.stringify(error)}`,
  );
  for (const form of FORMS) expect(said).not.toContain(form);
});

test.each([
  ['text instead of YAML', `: ${MARKER}: [`],
  ['an alias', `users: [{ name: u, user: { token: *${MARKER.slice(0, 6)}/that } }]`],
  ['JSON that is cut off', `{"users":[{"name":"u","user":{"token":"${MARKER}"`],
  ['a list instead of a mapping', `[${MARKER.slice(0, 11)}]`],
  [
    'a token that is a number of lists',
    `users: [{ name: u, user: { token: [${MARKER.slice(0, 11)}] } }]`,
  ],
])(
  'a kubeconfig in a Secret with %s: neither the problem nor the log shows its values',
  async (_what, text) => {
    const logged: unknown[] = [];
    const log = { ...silentLogger, warn: (...words: unknown[]) => void logged.push(words) };
    const member = await createMember('ns/c', Buffer.from(text).toString('base64'), 's', { log });
    expect(member.config).toBeUndefined();
    expect(logged).toHaveLength(1);
    const said = JSON.stringify([member.problem, logged]);
    for (const form of FORMS) expect(said).not.toContain(form);
  },
);

test('a watch of Secrets that breaks shows no value of them', async () => {
  const { client } = await start({ status: 200, body: `${MARKER}\n` });
  const events = client.watch(secrets, { abort: NEVER, resourceVersion: '1' });
  const said = await (async () => {
    for await (const event of events) expect(event).toBeUndefined();
    return '';
  })().catch((error: unknown) => messageOf(error));
  expect(said).not.toBe('');
  for (const form of FORMS) expect(said).not.toContain(form);
});

test('the table above has each file of the product that reads Secrets', () => {
  const files = globSync('src/**/*.ts').filter((path) => !path.endsWith('.test.ts'));
  const readers = files.filter((path) =>
    /\breadSecret\(|client\s*\.get\(secrets\b|kind (?:===|!==) 'Secret'|createMember\(/.test(
      readFileSync(path, 'utf8').replaceAll(/\s+/g, ' ').replaceAll('client .get', 'client.get'),
    ),
  );
  const covered = new Set([
    ...Object.values(READERS).map(([file]) => file),
    // The problems of a kubeconfig, above.
    'src/dialects/capi/plan/workload-member.ts',
    'src/dialects/capi/plan/workload-clusters.ts',
    // It reads with the rights of the person who runs the command, and parses as the extension does.
    'src/dialects/capi/command/preview-machines.ts',
    // It writes the Secrets of its user. `addons.test.ts` proves that its messages quote none of their values.
    'src/dialects/kubeadm/plan/addons.ts',
  ]);
  expect(readers.filter((path) => !covered.has(path))).toEqual([]);
});
