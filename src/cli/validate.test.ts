/** Shows the output for a plan file: one line if it can be carried out, or everything that is wrong with it. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { buildCattlePlan } from '../../test/support/builders/cattle-plans.ts';
import { buildPlan, buildUpdate } from '../../test/support/builders/plans.ts';
import { validate } from '../../test/support/builders/validation.ts';
import type { RefitError } from '../util/errors.ts';

const MANIFEST = `version: v1.36.3
hosts: [{ name: c1, role: controlPlane }]
binaries: { kubeadm: { path: /opt/kubeadm }, kubelet: { path: /opt/kubelet } }
`;

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'refit-validate-'));
});
afterAll(async () => await rm(directory, { recursive: true }));

async function file(text: string): Promise<string> {
  const path = join(directory, 'plan.yaml');
  await writeFile(path, text);
  return path;
}

async function lineOf(path: string): Promise<string> {
  const error: unknown = await validate([path], () => undefined).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'REFIT_FILE', exitCode: 2 });
  return (error as RefitError).line;
}

test.each([
  [1, '1 command'],
  [2, '2 commands'],
])('a valid plan with this number of commands is accepted: %d', async (count, words) => {
  const commands = Array.from({ length: count }, () => ({ k0supdate: buildUpdate() }));
  const path = await file(stringify(buildPlan({ commands })));
  let told = '';
  await validate([path], (text) => {
    told += text;
  });
  expect(told).toBe(`${path}: Plan autopilot (id1) with ${words} can be carried out\n`);
});

test('each download without sha256 gets a warning', async () => {
  const path = await file(
    stringify(
      buildPlan({
        commands: [
          { k0supdate: buildUpdate({ platforms: { 'linux-amd64': { url: 'https://d/k0s' } } }) },
        ],
      }),
    ),
  );
  let told = '';
  await validate([path], (text) => {
    told += text;
  });
  expect(told.split('\n')[1]).toBe(
    `${path}: warning: spec.commands[0].k0supdate.platforms.linux-amd64.sha256: is missing, so nodes run whatever the server sends; add the SHA-256 of the file`,
  );
});

test('refit validate warns about a Plan without id and timestamp, which k0s requires', async () => {
  const { spec: _spec, ...plan } = buildPlan({});
  const path = await file(
    stringify({ ...plan, spec: { commands: [{ k0supdate: buildUpdate() }] } }),
  );
  let told = '';
  await validate([path], (text) => {
    told += text;
  });
  const demanded =
    "is missing; if the CustomResourceDefinition of k0s is installed, the API server refuses the Plan, and k0s's own leader does not carry it out; add for example";
  expect(told.trimEnd().split('\n')).toEqual([
    `${path}: Plan autopilot with 1 command can be carried out`,
    `${path}: warning: spec.id: ${demanded} 2026-11-20`,
    `${path}: warning: spec.timestamp: ${demanded} now`,
  ]);
});

test('a later command with an older version: a warning, since only a policy can allow it', async () => {
  const versions = ['v1.36.3+k0s.2', 'v1.35.7+k0s.0'];
  const commands = versions.map((version) => ({ k0supdate: buildUpdate({ version }) }));
  const path = await file(stringify(buildPlan({ commands })));
  let told = '';
  await validate([path], (text) => {
    told += text;
  });
  expect(told.split('\n')[1]).toBe(
    `${path}: warning: spec.commands[1].k0supdate.version: nodes of spec.commands[0] would go from v1.36.3+k0s.2 down to v1.35.7+k0s.0: ` +
      "Refit refuses this step unless an UpgradePolicy allows Downgrade; k0s's own leader does not check this rule, so Refit may end the plan if it becomes the leader later",
  );
});

test('two problems of a file are both named, each with its field, what was found and what would be right', async () => {
  const path = await file(
    stringify(buildPlan({ id: '', commands: [{ k0supdate: buildUpdate({ version: 'latest' }) }] })),
  );
  expect(await lineOf(path)).toBe(
    `REFIT_FILE: ${path}: spec.id: "" is empty; use for example 2026-11-20; ` +
      `${path}: spec.commands[0].k0supdate.version: "latest" is not a version; use for example v1.36.3+k0s.0 ` +
      '(correct the fields; `kubectl explain` shows every field of a kind)',
  );
});

test('wrong values and broken rules: all at once, except what may follow from a wrong value', async () => {
  const path = await file(`apiVersion: upgrade.refit.dev/v1alpha1
kind: UpgradePolicy
metadata: { name: nightly, namespace: default }
spec:
  maxUnavailable: 0
  soak: soon
  drain: { onDeadline: Later }
  windows: [{ start: "22:00", length: 4h, timeZone: Mars }]
`);
  const line = await lineOf(path);
  for (const problem of [
    'spec.maxUnavailable: is the number 0, expected a number of at least 1',
    'spec.drain.onDeadline: is the text "Later", expected Wait, Stop, Skip or SkipNode',
    'spec.soak: "soon" is not a time',
    'spec.windows[0].timeZone must be a time zone such as Europe/Berlin',
  ])
    expect(line).toContain(problem);
  expect(line.split(`${path}: `)).toHaveLength(5);
});

test.each([
  [
    'a kubeconfig',
    'apiVersion: v1\nkind: Config\n',
    'holds a Config of v1, expected a Plan of autopilot.k0sproject.io/v1beta2 or a Plan of upgrade.cattle.io/v1 or an UpgradePolicy of upgrade.refit.dev/v1alpha1 or an UpdateConfig of autopilot.k0sproject.io/v1beta2',
  ],
  [
    'nothing',
    '',
    'is empty or has only comments, expected a Plan of autopilot.k0sproject.io/v1beta2 or',
  ],
  ['no YAML', 'a: [\n', 'is not YAML: Flow sequence in block collection'],
  ['something else', '- 1\n', 'holds a list, expected a Plan'],
])('a file with something that Refit does not judge is refused: %s', async (_name, text, words) => {
  expect(await lineOf(await file(text))).toContain(`plan.yaml: ${words}`);
});

test.each([
  [
    'drain: {enabled: false, evictionRequests: Use}',
    'warning: spec.drain.evictionRequests: Use has no effect, because spec.drain.enabled is false',
  ],
  [
    'keepPrevious: 24h, plans: [{dialect: cattle}, {dialect: capi}]',
    'warning: spec.keepPrevious has no effect on plans of capi: only k0s Plans say when the previous binary is removed',
  ],
  [
    'keepPrevious: 24h, plans: [{dialect: autopilot}, {name: a}]',
    'warning: spec.keepPrevious has no effect on plans of cattle: its Jobs need no agent',
  ],
  ['keepPrevious: 24h, plans: [{dialect: autopilot}]', undefined],
  ['keepPrevious: 24h, plans: []', undefined],
  ['keepPrevious: 24h', 'warning: spec.keepPrevious has no effect on plans of kubeadm'],
])('a policy with %s: what has no effect', async (spec, warning) => {
  const path = await file(
    `apiVersion: upgrade.refit.dev/v1alpha1\nkind: UpgradePolicy\nmetadata: {name: a}\nspec: {${spec}}\n`,
  );
  let told = '';
  await validate([path], (text) => {
    told += text;
  });
  if (warning === undefined) expect(told).not.toContain('warning');
  else expect(told).toContain(warning);
});

test('an UpgradePolicy: it is valid, or every wrong field is listed', async () => {
  const head =
    'apiVersion: upgrade.refit.dev/v1alpha1\nkind: UpgradePolicy\nmetadata: {name: nightly}\n';
  const window = '{days: [Monday], start: "22:00", length: 4h, timeZone: Europe/Berlin}';
  let told = '';
  const path = await file(`${head}spec: {windows: [${window}]}\n`);
  await validate([path], (text) => {
    told += text;
  });
  expect(told).toBe(`${path}: UpgradePolicy nightly is valid\n`);
  const wrong = await lineOf(
    await file(`${head}spec: {soak: 9000h, windows: [${window.replace('Berlin', 'Bonn')}]}\n`),
  );
  expect(wrong).toContain('UpgradePolicy nightly: spec.soak must be 0s, or a time above zero');
  expect(wrong).toContain('spec.windows[0].timeZone must be');
  expect(wrong).toMatch(/\(correct the fields; `kubectl explain` shows every field of a kind\)$/);
  expect(await lineOf(await file(`${head}spec: {failureBudgets: 3}\n`))).toContain(
    'spec: it has no member failureBudgets (did you mean failureBudget?)',
  );
});

test('refit validate names the right value for each mistake in the k0s example of an UpdateConfig', async () => {
  const text = (kind: string, metadata: string, day: string): string =>
    `apiVersion: autopilot.k0sproject.io/v1beta2\nkind: ${kind}\nmetadata: {${metadata}}\nspec: {upgradeStrategy: {type: periodic, periodic: {days: [${day}], startTime: "00:00", length: 24h}}}\n`;
  let told = '';
  const path = await file(text('UpdateConfig', 'name: example', 'Tuesday'));
  await validate([path], (line) => {
    told += line;
  });
  expect(told).toBe(`${path}: UpdateConfig example can be followed\n`);
  const documented = await lineOf(
    await file(text('UpdateConfig', 'name: example, namespace: default', 'Tuesdsay')),
  );
  expect(documented).toContain('days[0]: "Tuesdsay" is not a weekday; use Tuesday');
  expect(await lineOf(await file(text('UpdaterConfig', 'name: example', 'Tuesday')))).toContain(
    'kind: "UpdaterConfig" is not a kind of autopilot.k0sproject.io/v1beta2; use UpdateConfig',
  );
});

test('an UpdaterConfig in a folder is a problem, not an object of another product', async () => {
  const folder = await mkdtemp(join(directory, 'folder-'));
  await writeFile(
    join(folder, 'config.yaml'),
    'apiVersion: autopilot.k0sproject.io/v1beta2\nkind: UpdaterConfig\nmetadata: {name: a}\nspec: {}\n',
  );
  expect(await lineOf(folder)).toContain('use UpdateConfig');
});

test('refit validate suggests periodic when an UpdateConfig gives cron as an object', async () => {
  const config = {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'UpdateConfig',
    metadata: { name: 'example' },
    spec: { upgradeStrategy: { type: 'cron', cron: { days: ['Monday'], startTime: '22:00' } } },
  };
  expect(await lineOf(await file(stringify(config)))).toContain(
    'spec.upgradeStrategy.cron: it is an object, but a schedule is a text such as "0 0 22 * * *"; write days, startTime and length into spec.upgradeStrategy.periodic, with type: periodic',
  );
  const number = { ...config, spec: { upgradeStrategy: { type: 'cron', cron: 5 } } };
  expect(await lineOf(await file(stringify(number)))).toContain(
    'spec.upgradeStrategy.cron: is the number 5, expected a text: put it in quotes',
  );
});

test('refit validate says where to move targets.workers of an airgapupdate', async () => {
  const { workers = { discovery: {} } } = buildUpdate().targets;
  const { version, platforms } = buildUpdate();
  const bundle = { version, platforms, targets: { workers } };
  const plan = stringify({ ...buildPlan({}), spec: { id: 'a', timestamp: 'now', commands: [] } });
  const written = plan.replace(
    'commands: []',
    `commands: [${JSON.stringify({ airgapupdate: bundle })}]`,
  );
  const advice =
    'airgapupdate: it has no field targets; move the content of targets.workers to airgapupdate.workers';
  expect(await lineOf(await file(written))).toContain(`spec.commands[0].${advice}`);
  const config = {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'UpdateConfig',
    metadata: { name: 'example' },
    spec: { planSpec: { commands: [{ airgapupdate: { targets: { workers } } }] } },
  };
  expect(await lineOf(await file(stringify(config)))).toContain(
    `spec.planSpec.commands[0].${advice}`,
  );
});

test('a namespace on a kind without namespaces is a warning, for every such kind', async () => {
  const plan = buildPlan({});
  const placed = { ...plan, metadata: { ...plan.metadata, namespace: 'kube-system' } };
  const config = {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'UpdateConfig',
    metadata: { name: 'example', namespace: 'kube-system' },
    spec: {
      upgradeStrategy: { type: 'periodic', periodic: { startTime: '22:00', length: '2h' } },
    },
  };
  const policy = {
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'nightly', namespace: 'kube-system' },
    spec: {},
  };
  for (const object of [placed, config, policy]) {
    const path = await file(stringify(object));
    const said: string[] = [];
    await validate([path], (line) => void said.push(line));
    expect(said).toContain(
      `${path}: warning: metadata.namespace: "kube-system" is not used, because the kind has no namespaces; remove it\n`,
    );
  }
});

test('a Plan of system-upgrade-controller that selects no node is carried out, with a warning', async () => {
  const path = await file(
    stringify({ ...buildCattlePlan('k3s'), spec: { upgrade: { image: 'i' }, version: 'v1' } }),
  );
  const said: string[] = [];
  await validate([path], (line) => void said.push(line));
  const nobody = 'so the Plan selects no node and is Complete at once';
  expect(said.slice(1)).toEqual([
    `${path}: warning: spec.nodeSelector: is missing, ${nobody}; use {} for all nodes\n`,
    `${path}: warning: spec.concurrency: is missing, ${nobody}; use 1\n`,
  ]);
});

test.each<[string, string, string]>([
  [
    'a Plan of system-upgrade-controller',
    stringify(buildCattlePlan('k3s')),
    'Plan system-upgrade/k3s can be carried out',
  ],
  [
    'a Plan of system-upgrade-controller with a channel, which only the controller asks',
    stringify(buildCattlePlan('k3s', { version: '', channel: 'https://example.com/stable' })),
    'Plan system-upgrade/k3s can be carried out',
  ],
  ['the hosts of kubeadm', MANIFEST, '1 host to upgrade to v1.36.3: the manifest is valid'],
  [
    "KubeOne's own manifest",
    stringify({
      apiVersion: 'kubeone.k8c.io/v1beta3',
      kind: 'KubeOneCluster',
      name: 'demo',
      versions: { kubernetes: '1.36.3' },
      controlPlane: { hosts: [{ publicAddress: '10.0.0.1' }] },
    }),
    '1 host to upgrade to v1.36.3: the manifest is valid',
  ],
])('a valid file is accepted: %s', async (_what, text, wanted) => {
  const path = await file(text);
  const said: string[] = [];
  await validate([path], (line) => void said.push(line));
  expect(said).toEqual([`${path}: ${wanted}\n`]);
});

test.each<[string, string, string]>([
  [
    'a version that is no label',
    stringify(buildCattlePlan('k3s', { version: 'v 1' })),
    'plan.yaml: ',
  ],
  [
    'neither a version nor a channel',
    stringify(buildCattlePlan('k3s', { version: '' })),
    'cannot resolve plan: missing channel and version',
  ],
  [
    'a channel',
    stringify(buildCattlePlan('k3s', { version: '', channel: 'ftp://example.com' })),
    'spec.channel: "ftp://example.com" is not an http or https URL',
  ],
  ['a version of kubeadm', MANIFEST.replace('v1.36.3', 'latest'), 'is not a version'],
])('the wrong value is named: %s', async (_what, text, wanted) => {
  expect(await lineOf(await file(text))).toContain(wanted);
});

const K3S = `# Server nodes
---
apiVersion: upgrade.cattle.io/v1
kind: Plan
metadata: { name: server-plan, namespace: system-upgrade }
spec:
  concurrency: 1
  nodeSelector:
    matchExpressions: [{ key: node-role.kubernetes.io/control-plane, operator: In, values: ["true"] }]
  upgrade: { image: rancher/k3s-upgrade }
  version: v1.33.1+k3s1
---
# Agent nodes
apiVersion: upgrade.cattle.io/v1
kind: Plan
metadata: { name: agent-plan, namespace: system-upgrade }
spec:
  concurrency: 1
  nodeSelector: {}
  prepare: { args: [prepare, server-plan], image: rancher/k3s-upgrade }
  upgrade: { image: rancher/k3s-upgrade }
  version: v1.33.1+k3s1
---
`;

async function told(...paths: string[]): Promise<string> {
  let text = '';
  await validate(paths, (line) => {
    text += line;
  });
  return text;
}

test('a file with the server and the agent Plan of k3s: each is judged', async () => {
  const path = await file(K3S);
  expect(await told(path)).toBe(
    `${path}: document 1: Plan system-upgrade/server-plan can be carried out\n` +
      `${path}: document 2: Plan system-upgrade/agent-plan can be carried out\n`,
  );
});

test('several documents: every wrong one is named, after the lines of the right ones', async () => {
  const secret = 'apiVersion: v1\nkind: Secret\nmetadata: { name: token }\n';
  const odd = 'apiVersion: upgrade.cattle.io/v2\nkind: Plan\nmetadata: { name: new }\n';
  const path = await file(
    `${K3S.replace('concurrency: 1', 'concurrency: one')}${secret}---\n${odd}`,
  );
  let text = '';
  const run = validate([path], (line) => {
    text += line;
  });
  await expect(run).rejects.toThrow(
    `${path}: document 1: spec.concurrency: is the text "one", expected a whole number; ` +
      `${path}: document 4: holds a Plan of upgrade.cattle.io/v2, expected a Plan of`,
  );
  expect(text).toBe(
    `${path}: document 3: holds a Secret of v1, which is not checked\n` +
      `${path}: document 2: Plan system-upgrade/agent-plan can be carried out\n`,
  );
});

test('several files and a folder: as kubectl takes them, without what lies beside', async () => {
  const folder = await mkdtemp(join(directory, 'folder-'));
  await writeFile(join(folder, 'b.yml'), stringify(buildPlan()));
  await writeFile(
    join(folder, 'a.yaml'),
    'kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1\n',
  );
  await writeFile(join(folder, 'notes.txt'), '{{');
  await mkdir(join(folder, 'more.yaml'));
  const path = await file(K3S);
  const lines = (await told(folder, path)).split('\n');
  expect(lines.map((line) => line.replace(/^.*\/(?=[^/]+: )/, '').slice(0, 40))).toEqual([
    'a.yaml: holds a Kustomization of kustomi',
    'b.yml: Plan autopilot (id1) with 1 comma',
    'plan.yaml: document 1: Plan system-upgra',
    'plan.yaml: document 2: Plan system-upgra',
    '',
  ]);
});

test('a folder without a manifest, or with nothing to check', async () => {
  const folder = await mkdtemp(join(directory, 'folder-'));
  await expect(told(folder)).rejects.toThrow(
    `${folder}: the folder has no file whose name ends with .yaml, .yml or .json`,
  );
  await writeFile(join(folder, 'a.yaml'), 'kind: Secret\napiVersion: v1\n');
  await expect(told(folder)).rejects.toThrow(
    `${folder}: found nothing to check, expected a Plan of`,
  );
});

const POLICY = `apiVersion: upgrade.refit.dev/v1alpha1
kind: UpgradePolicy
metadata: { name: nightly }
spec: { windows: [{ start: START, length: LENGTH, timeZone: ZONE }] }
`;

test.each([
  [
    '9:5',
    '4h',
    'UTC',
    'spec.windows[0].start: "9:5" is not a time of day; use hours and minutes with two digits each, for example 09:05',
  ],
  [
    '22:00',
    'long',
    'UTC',
    'spec.windows[0].length: "long" is not a time; use for example 90s or 1h30m',
  ],
  [
    '22:00',
    '4h',
    'over there',
    'spec.windows[0].timeZone: "over there" is not the name of a time zone; use for example Europe/Berlin or UTC',
  ],
])('a window from %s for %s in %s: what would be right', async (start, length, zone, line) => {
  const text = POLICY.replace('START', `"${start}"`)
    .replace('LENGTH', length)
    .replace('ZONE', zone);
  const told = await lineOf(await file(text));
  expect(told).toContain(line);
  expect(told).not.toMatch(/pattern|\^/);
});

test.each([
  ['UpgradePolicy', 'upgrade.refit.dev/v9', 'an UpgradePolicy'],
  ['Secret', 'v1', 'a Secret'],
  ['Ingress', 'networking.k8s.io/v1', 'an Ingress'],
  ['User', 'example.com/v1', 'a User'],
])('a %s is named with its article', async (kind, apiVersion, title) => {
  const told = await lineOf(await file(stringify({ apiVersion, kind, metadata: { name: 'x' } })));
  expect(told).toContain(`holds ${title} of ${apiVersion}`);
});
