/** Tests what `refit __complete` offers, with a cluster in memory and without one. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApiServer } from '../../sandbox/api-server/api-server.ts';
import { COMMANDS } from '../../test/support/commands.ts';
import { definitionOf } from '../../tools/crds/definition.ts';
import { CUSTOM_KINDS } from '../../tools/crds/registry.ts';
import { nodeRollouts } from '../api/kinds.ts';
import { customResourceDefinitions, namespaces, nodes } from '../kube/resources.ts';
import { clientOver } from '../kube/transport/http-client.ts';
import { complete } from './complete.ts';

const NEVER = new AbortController().signal;
const things = new AsyncDisposableStack();
/** A server may return a plan with any name, even this one. */
const HOSTILE = '$(reboot)';
let kubeconfig = '';

beforeAll(async () => {
  const server = await startApiServer();
  things.defer(async () => await server.stop());
  const admin = clientOver(server.caller);
  for (const kind of CUSTOM_KINDS)
    await admin.create(customResourceDefinitions, definitionOf(kind));
  for (const name of ['a', 'b'])
    await admin.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  for (const name of ['w1', 'w2'])
    await admin.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
  for (const [namespace, name] of [
    ['a', 'server'],
    ['b', 'server'],
    ['a', 'agent'],
    ['b', HOSTILE],
    ['b', 'deleted'],
  ] as const) {
    const plan = { apiVersion: 'upgrade.cattle.io/v1', kind: 'Plan', name, namespace };
    await admin.create(
      nodeRollouts,
      {
        apiVersion: 'upgrade.refit.dev/v1alpha1',
        kind: 'NodeRollout',
        metadata: { name: name === HOSTILE ? 'hostile' : name, namespace },
        spec: { plan },
      },
      { namespace },
    );
  }
  await admin.patch(
    nodeRollouts,
    'deleted',
    { status: { phase: 'deleted', planDeleted: '2026-11-20T08:00:00Z' } },
    { type: 'merge', subresource: 'status', namespace: 'b' },
  );
  const directory = await mkdtemp(join(tmpdir(), 'refit-complete-'));
  things.defer(async () => await rm(directory, { recursive: true }));
  kubeconfig = join(directory, 'kubeconfig');
  const lists = {
    clusters: [{ name: 'c', cluster: { server: server.url } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
    users: [{ name: 'c', user: {} }],
  };
  await writeFile(kubeconfig, JSON.stringify({ 'current-context': 'c', ...lists }));
});

afterAll(async () => await things.disposeAsync());

/** Returns the offered words and the directive at the end. */
async function offered(...line: string[]): Promise<string[]> {
  const text = await complete(line, COMMANDS, NEVER);
  return text
    .trimEnd()
    .split('\n')
    .map((each) => each.split('\t')[0] ?? '');
}

test.each<[string, string[]]>([
  ['stat', ['status', ':4']],
  ['kubeadm ap', ['apply', ':4']],
  ['status --wa', ['--watch', ':4']],
  ['status --dialect c', ['cattle', 'capi', ':4']],
  ['completion z', ['zsh', ':4']],
  ['preview --file ', [':0']],
  ['validate ', [':0']],
  ['version ', [':4']],
])('the completion of the words %j offers what fits', async (line, wanted) => {
  expect((await offered(...line.split(' '))).toSorted()).toEqual(wanted.toSorted());
});

test('commands about a node are completed with the names of nodes', async () => {
  expect(await offered('why', '--kubeconfig', kubeconfig, '')).toEqual(['w1', 'w2', ':4']);
  expect(await offered('hold', `--kubeconfig=${kubeconfig}`, 'w2')).toEqual(['w2', ':4']);
});

test('commands about a plan are completed with the names of plans, and with a namespace where two plans share a name', async () => {
  const wanted = ['a/server', 'agent', 'b/server', ':4'];
  expect(await offered('pause', '--kubeconfig', kubeconfig, '')).toEqual(wanted);
  expect(await offered('status', '--kubeconfig', kubeconfig, '--plan', '')).toEqual(wanted);
});

test.each([
  ['no such file', '/nonexistent/kubeconfig'],
  ['no such option value', '--context'],
])('without a cluster, there are no names and no error: %s', async (_what, path) => {
  expect(await offered('why', '--kubeconfig', path, '')).toEqual([':4']);
});

test('a name that a shell would expand is not offered', async () => {
  expect(await offered('pause', '--kubeconfig', kubeconfig, HOSTILE.charAt(0))).toEqual([':4']);
});
