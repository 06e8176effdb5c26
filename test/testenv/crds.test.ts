/**
 * Tests that a real API server accepts our CRDs and objects of real clusters, and refuses objects that violate the
 * schema.
 */
import { globSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import type { Resource } from '../../src/kube/resources.ts';
import {
  type CustomResourceDefinition,
  customResourceDefinitions,
} from '../../src/kube/resources.ts';
import { StatusError } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { CUSTOM_KINDS } from '../../tools/crds/registry.ts';
import {
  ODD_POLICIES,
  ODD_UPDATER_SETS,
  POLICY,
  UPDATER_SET,
} from '../support/builders/objects-of-own-kinds.ts';
import { REFUSED, TAKEN } from '../support/builders/odd-cattle-plans.ts';
import {
  type CustomObject,
  canonicalSpec,
  recordedObjects,
  recordedShapes,
  widenedSpec,
} from '../support/recordings.ts';
import { kubeconfigFor, kubectlAs } from './control-plane.ts';
import { whyNotSince } from './since.ts';

/** An API server of v1.30 leaves out the first part of the name of a field of the status. */
const NAMES_STATUS = whyNotSince(31, 'names it') === undefined;

const TARGET = { discovery: { static: { nodes: ['worker0'] } } };
const PLATFORMS = { 'linux-amd64': { url: 'https://example.com/k0s' } };
const K0S_UPDATE = { version: 'v1.36.3+k0s.0', platforms: PLATFORMS, targets: { workers: TARGET } };
const AIRGAP_UPDATE = { version: 'v1.36.3+k0s.0', platforms: PLATFORMS, workers: TARGET };

let client: KubeClient;

beforeAll(async () => {
  client = createClient(await loadClusterConfig({ path: await kubeconfigFor('admin') }));
  for (const file of globSync('deploy/crds/*.yaml')) await install(file);
});

afterAll(() => client.close());

/** Applies a definition as `kubectl apply --server-side` does, and waits until objects of its kind can be listed. */
async function install(file: string): Promise<void> {
  const crd = parse(readFileSync(file, 'utf8'), { version: '1.1' }) as CustomResourceDefinition;
  const options = { type: 'apply', fieldManager: 'crds-test', force: true } as const;
  await client.patch(customResourceDefinitions, crd.metadata.name, crd, options);
  await vi.waitFor(async () => await client.list(resourceOf(crd.spec.names.kind)), {
    timeout: 150_000,
    interval: 250,
  });
}

function resourceOf(kind: string): Resource<CustomObject> {
  const found = CUSTOM_KINDS.find(({ resource }) => resource.kind === kind);
  if (found === undefined) throw new Error(`no kind ${kind}`);
  return found.resource;
}

/** Writes the object's spec, then its status through the subresource; reads it and removes it. */
async function roundTrip(
  kind: string,
  { metadata, spec, status }: CustomObject,
): Promise<CustomObject> {
  const resource = resourceOf(kind);
  const { name, labels, annotations } = metadata;
  const wanted = { metadata: { name: `crds-${name}`, labels, annotations }, spec };
  const object = {
    apiVersion: `${resource.group}/${resource.version}`,
    kind,
    ...wanted,
  } as CustomObject;
  const created = await client.create(resource, object);
  try {
    if (status !== undefined)
      await client.replace(resource, { ...created, status }, { subresource: 'status' });
    return await client.get(resource, created.metadata.name);
  } finally {
    await client.delete(resource, created.metadata.name);
  }
}

test.each(recordedShapes())(
  'the CRD $name is established in the same form as in real k0s clusters, or with fewer required fields',
  async ({ name, spec }) => {
    const stored = await client.get(customResourceDefinitions, name);
    const holds = stored.status?.conditions
      ?.filter(({ status }) => status === 'True')
      .map(({ type }) => type);
    expect(holds).toEqual(expect.arrayContaining(['NamesAccepted', 'Established']));
    expect(stored.status?.conditions?.map(({ type }) => type)).not.toContain('NonStructuralSchema');
    expect(canonicalSpec({ ...stored.spec })).toEqual(widenedSpec(spec));
  },
);

test.each(recordedObjects())(
  'the API server returns a recorded $kind unchanged',
  async (object) => {
    const { metadata, spec, status } = await roundTrip(object.kind ?? '', object);
    expect(metadata.annotations).toEqual(object.metadata.annotations);
    expect({ spec, status }).toEqual({ spec: object.spec, status: object.status });
  },
);

test.each<[string, string, unknown, CustomObject['status']?]>([
  ['Plan', 'an empty id', { id: '', timestamp: '', commands: [{ k0supdate: K0S_UPDATE }] }],
  ['Plan', 'no commands', { id: 'a', timestamp: 'now', commands: [] }],
  ['Plan', 'a command with nothing in it', { id: 'a', timestamp: 'now', commands: [{}] }],
  [
    'Plan',
    'both commands in one',
    {
      id: 'a',
      timestamp: 'now',
      commands: [{ k0supdate: K0S_UPDATE, airgapupdate: AIRGAP_UPDATE }],
    },
  ],
  ...[0, -1, 4_000_000_000].map((concurrent): [string, string, unknown] => [
    'Plan',
    `concurrent ${concurrent}`,
    {
      id: 'a',
      timestamp: '',
      commands: [
        { airgapupdate: { ...AIRGAP_UPDATE, workers: { ...TARGET, limits: { concurrent } } } },
      ],
    },
  ]),
  [
    'Plan',
    'selectors that do not parse, no platform, a hash that is none',
    {
      id: 'a',
      timestamp: 'x',
      commands: [
        { k0supdate: { version: '', platforms: {}, targets: {}, forceupdate: true } },
        {
          airgapupdate: {
            version: 'not a version',
            platforms: { '': { url: '', sha256: 'xyz' } },
            workers: {
              limits: {},
              discovery: { selector: { labels: 'a in (', fields: '=' }, static: {} },
            },
          },
        },
      ],
    },
  ],
  [
    'Plan',
    'a state that nobody knows',
    { id: 'a', timestamp: '', commands: [] },
    { state: '', commands: [{ id: -1, state: 'Whatever', k0supdate: {} }] },
  ],
  ['UpdateConfig', 'nothing said', {}],
  [
    'UpdateConfig',
    'an empty strategy',
    { upgradeStrategy: { periodic: { days: ['Tuesdays'] } }, planSpec: { commands: [{}] } },
  ],
  ['ControlNode', 'no status', undefined],
  ['UpgradePolicy', 'nothing said', {}],
  [
    'UpgradePolicy',
    'everything said',
    POLICY,
    {
      observedGeneration: 1,
      covers: ['autopilot/autopilot'],
      conditions: [
        {
          type: 'Accepted',
          status: 'True',
          lastTransitionTime: '2026-06-10T20:00:00Z',
          reason: 'Accepted',
        },
      ],
    },
  ],
  ['UpgradePolicy', 'a number of nodes', { maxUnavailable: 3 }],
  [
    'UpgradePolicy',
    'names as long as names may be',
    { plans: [{ namespace: 'n'.repeat(63), name: 'n'.repeat(253) }] },
  ],
  [
    'UpdaterSet',
    'a selector as long as labels may be',
    {
      selector: {
        matchExpressions: [
          { key: `${'p'.repeat(253)}/${'k'.repeat(63)}`, operator: 'In', values: ['v'.repeat(63)] },
        ],
      },
      updaters: [{ name: 'refit', refit: {} }],
    },
  ],
  ['UpgradePolicy', 'no soak', { soak: '0s' }],
  ['UpgradePolicy', 'no soak in other words', { soak: '0m' }],
  ['UpdaterSet', 'Refit alone', { updaters: [{ name: 'refit', refit: {} }] }],
  ['UpdaterSet', 'everything said', UPDATER_SET],
  [
    'UpgradePolicy',
    'a blackout of one day, and one from a date to a time',
    {
      blackouts: [
        { from: '2026-12-24', to: '2026-12-24' },
        { from: '2026-12-31', to: '2027-01-01T06:00:00Z' },
      ],
    },
  ],
])('%s with %s is taken, and only defaults are added', async (kind, _, spec, status) => {
  const read = await roundTrip(kind, { metadata: { name: 'odd' }, spec, status });
  const schema = CUSTOM_KINDS.find(({ resource }) => resource.kind === kind)?.schema;
  const written = {
    ...(spec === undefined ? {} : { spec }),
    ...(status === undefined ? {} : { status }),
  };
  expect({ spec: read.spec, status: read.status }).toEqual(schema?.parse(written));
});

test('a Plan needs neither id nor timestamp', async () => {
  const spec = { commands: [] };
  const read = await roundTrip('Plan', { metadata: { name: 'no-id' }, spec });
  expect(read.spec).toEqual(spec);
});

test('the API server removes fields of a Plan that the schema does not define', async () => {
  const spec = { id: 'a', timestamp: '', commands: [], surprise: true };
  const read = await roundTrip('Plan', { metadata: { name: 'pruned' }, spec });
  expect(read.spec).toEqual({ id: 'a', timestamp: '', commands: [] });
});

test.each<[string, string, string, unknown, CustomObject['status']?]>([
  ['Plan', 'no spec', 'spec', undefined],
  ['Plan', 'no commands', 'spec.commands', { id: 'a', timestamp: '' }],
  ['Plan', 'a number for an id', 'spec.id', { id: 1, timestamp: '', commands: [] }],
  [
    'Plan',
    'a platform without url',
    'spec.commands[0].k0supdate.platforms.linux-amd64.url',
    {
      id: 'a',
      timestamp: '',
      commands: [{ k0supdate: { ...K0S_UPDATE, platforms: { 'linux-amd64': {} } } }],
    },
  ],
  [
    'Plan',
    'a target without discovery',
    'spec.commands[0].airgapupdate.workers.discovery',
    { id: 'a', timestamp: '', commands: [{ airgapupdate: { ...AIRGAP_UPDATE, workers: {} } }] },
  ],
  [
    'Plan',
    'half a node at a time',
    'spec.commands[0].airgapupdate.workers.limits.concurrent',
    {
      id: 'a',
      timestamp: '',
      commands: [
        { airgapupdate: { ...AIRGAP_UPDATE, workers: { ...TARGET, limits: { concurrent: 0.5 } } } },
      ],
    },
  ],
  [
    'Plan',
    'a status without commands',
    'status.commands',
    { id: 'a', timestamp: '', commands: [] },
    { state: 'Completed' },
  ],
  [
    'Plan',
    'a time that is none',
    'status.commands[0].k0supdate.workers[0].lastUpdatedTimestamp',
    { id: 'a', timestamp: '', commands: [] },
    {
      state: '',
      commands: [
        {
          id: 0,
          state: '',
          k0supdate: { workers: [{ name: 'w', state: '', lastUpdatedTimestamp: 'noon' }] },
        },
      ],
    },
  ],
  [
    'UpdateConfig',
    'a strategy that is none',
    'spec.upgradeStrategy.type',
    { upgradeStrategy: { type: 'weekly' } },
  ],
  ['UpdateConfig', 'a plan without commands', 'spec.planSpec.commands', { planSpec: {} }],
  [
    'ControlNode',
    'half an address',
    'status.addresses[0].type',
    undefined,
    { addresses: [{ address: '127.0.0.1' }] },
  ],
  ...Object.entries(ODD_POLICIES).map(
    ([what, [field, spec]]): [string, string, string, unknown] => [
      'UpgradePolicy',
      what,
      `spec.${field}`,
      spec,
    ],
  ),
  ...Object.entries(ODD_UPDATER_SETS).map(
    ([what, [field, spec]]): [string, string, string, unknown] => [
      'UpdaterSet',
      what,
      `spec.${field}`,
      spec,
    ],
  ),
])('%s with %s is refused', async (kind, _, field, spec, status) => {
  const refused: unknown = await roundTrip(kind, { metadata: { name: 'bad' }, spec, status }).catch(
    (e: unknown) => e,
  );
  expect(refused).toBeInstanceOf(StatusError);
  const { code, reason, details } = (refused as StatusError).status;
  expect({ code, reason }).toEqual({ code: 422, reason: 'Invalid' });
  expect(details?.causes?.map((cause) => cause.field)).toContain(
    NAMES_STATUS ? field : field.replace(/^status\./, ''),
  );
});

test('odd Plans of system-upgrade-controller are judged strictly, as by the definition of the original', async () => {
  const head = { apiVersion: 'upgrade.cattle.io/v1', kind: 'Plan' };
  const planOf = (name: string, spec?: object): object => ({
    ...head,
    metadata: { name, namespace: 'default' },
    spec,
  });
  const items = [
    ...TAKEN.map((spec, index) => planOf(`taken-${index}`, spec)),
    ...REFUSED.map(([, spec], index) => planOf(`refused-${index}`, spec)),
  ];
  // The items are separate documents, because kubectl checks a List itself. kubectl v1.30 takes text that begins
  // with a brace for one JSON document.
  const documents = items.map((item) => `---\n${JSON.stringify(item)}\n`).join('');
  const args = ['create', '--dry-run=server', '--validate=strict', '-o', 'name', '-f', '-'];
  const { stdout, stderr } = await kubectlAs('admin', args, documents);
  expect(stdout.trim().split('\n')).toEqual(
    TAKEN.map((_, index) => `plan.upgrade.cattle.io/taken-${index}`),
  );
  const told = stderr.trim().split(/\n(?=Error from server|The Plan)/);
  expect(told).toHaveLength(REFUSED.length);
  for (const [index, [field]] of REFUSED.entries()) expect(told[index]).toContain(field);
});
