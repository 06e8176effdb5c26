/**
 * Tests that a real API server accepts the examples, and that the Plans of system-upgrade-controller among the examples
 * are carried out there.
 */
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { type Job, nodes } from '../../src/kube/resources.ts';
import { secretReader } from '../support/builders/secret-reader.ts';
import { testUnless } from '../support/left-out.ts';
import { NAMESPACE, nodeOf } from './cattle-rig.ts';
import { CattleScene } from './cattle-scene.ts';
import { apply, installKinds, kubectlAs, ON_SERVER } from './control-plane.ts';
import { WHY_KUBELETS_TOO_NEW } from './since.ts';

const EXAMPLES = 'examples/system-upgrade-controller';
const SERVER = 'example-server';
const WORKERS = ['example-worker-1', 'example-worker-2', 'example-worker-3'];
/** The labels of a node that opted in, as the example with a channel requires them. */
const OPTED_IN = { 'example.com/appliance': '1', 'example.com/upgrade': 'enabled' };

let scene: CattleScene;
let channel: Server;

beforeAll(async () => {
  channel = createServer((_request, response) => {
    response.writeHead(302, { location: '/releases/v2.0.0' }).end();
  });
  await new Promise<void>((resolve) => channel.listen(0, '127.0.0.1', resolve));
  await installKinds();
  scene = await CattleScene.open({ examples: WORKERS }, createServerNode);
  const rights = { apiVersion: 'v1', kind: 'List', items: secretReader(NAMESPACE, 'company-ca') };
  await apply(JSON.stringify(rights));
  await scene.admin.patch(
    nodes,
    'example-worker-1',
    { metadata: { labels: OPTED_IN } },
    { type: 'merge' },
  );
});

afterAll(async () => {
  await kubectlAs('admin', ['delete', 'secret', 'company-ca', '-n', NAMESPACE]);
  await scene.close();
  await kubectlAs('admin', ['delete', 'node', SERVER]);
  channel.closeAllConnections();
  channel.close();
});

async function createServerNode(): Promise<void> {
  const node = nodeOf(SERVER, { 'node-role.kubernetes.io/control-plane': 'true' });
  await apply(JSON.stringify(node));
}

/** The text of the example, with the address of the test's own channel, a shorter delay and a window that is always open. */
async function textOf(example: string): Promise<string> {
  const text = await readFile(`${EXAMPLES}/${example}.yaml`, 'utf8');
  const { port } = channel.address() as AddressInfo;
  return text
    .replace('https://releases.example.com/', `http://127.0.0.1:${port}/`)
    .replace('postCompleteDelay: 2m', 'postCompleteDelay: 1s')
    .replaceAll('days: [saturday, sunday]', 'days: [mon, tue, wed, thu, fri, sat, sun]')
    .replaceAll('startTime: "01:00"', 'startTime: "00:00"')
    .replaceAll('endTime: "05:00"', 'endTime: "23:59:59"');
}

function plansIn(text: string): CattlePlan[] {
  const objects = parseAllDocuments(text).map((document) => document.toJS() as CattlePlan);
  return objects.filter(({ kind }) => kind === 'Plan');
}

const nodeNameOf = ({ metadata }: Job): string =>
  metadata.labels?.['upgrade.cattle.io/node'] ?? 'no label with the node';

type Row = readonly [example: string, nodesOfEachPlan: readonly (readonly string[])[]];

const TITLE =
  '%s: the Plans of the example complete, and each Plan runs on exactly the expected nodes';

async function complete(...[example, expected]: Row): Promise<void> {
  const text = await textOf(example);
  const plans = plansIn(text);
  await apply(text);
  for (const [index, { metadata, spec }] of plans.entries()) {
    const plan = await scene.until(metadata.name, 'Complete', 'True', 'Complete');
    const version = (spec?.version ?? 'v2.0.0').replaceAll('+', '-');
    expect(plan.status?.latestVersion).toBe(version);
    const jobs = await scene.jobsOf(metadata.name);
    expect(jobs.map(nodeNameOf).toSorted()).toEqual(expected[index]);
  }
}

test.each<Row>([
  ['kernel-parameter', [WORKERS]],
  ['os-update', [[SERVER, ...WORKERS]]],
  ['os-image', [['example-worker-1']]],
  ['certificate', [[SERVER, ...WORKERS]]],
  ['opt-in-channel', [['example-worker-1']]],
])(TITLE, complete);

testUnless(WHY_KUBELETS_TOO_NEW).each<Row>([
  ['k3s', [[SERVER], WORKERS]],
  ['rke2', [[SERVER], WORKERS]],
])(TITLE, complete);

test('os-image: the Job drains the node, then runs the image whose tag is the version of the Plan', async () => {
  await apply(await textOf('os-image'));
  await scene.until('os-image', 'Complete', 'True', 'Complete');
  const [job] = await scene.jobsOf('os-image');
  expect(job?.spec?.['template']).toMatchObject({
    spec: {
      initContainers: [{ name: 'drain' }],
      containers: [
        {
          image: 'registry.example.com/appliance-os:v2.4.0',
          command: ['appliance-os'],
          args: ['upgrade', '--kernel', ...Array<unknown>(4).fill(expect.any(String)), '--reboot'],
          securityContext: { privileged: true, capabilities: { add: ['CAP_SYS_BOOT'] } },
        },
      ],
      volumes: expect.arrayContaining([
        { name: 'host-root', hostPath: { path: '/', type: 'Directory' } },
      ]) as unknown,
    },
  });
});

test.each([
  'cluster-api/updater-set',
  'k0s/airgap',
  'k0s/plan',
  'k0s/update-config',
  'k0s/update-config-cron',
  'k0s/update-config-edge',
  'policies/canary',
  'policies/edge',
  'policies/gitops',
  'policies/health',
  'policies/nightly',
  'policies/production',
  'policies/roll-back',
])('the API server accepts the example %s unchanged', async (example) => {
  const text = await readFile(`examples/${example}.yaml`, 'utf8');
  const dryRun = [...ON_SERVER, '--dry-run=server'];
  const { ok, stdout, stderr } = await kubectlAs('admin', dryRun, text);
  expect({ ok, stderr }).toEqual({ ok: true, stderr: '' });
  expect(stdout).toMatch(/^\S+ serverside-applied \(server dry run\)\n$/);
});
