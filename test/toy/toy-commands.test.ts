/**
 * Tests that a fifth dialect needs two edits outside its folder: its name in `DIALECT_NAMES`, and its module in
 * `MODULES`. Every command then says of its plans what its module says, and nothing that is true of another product only.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { GROUP_TITLES } from '../../src/cli/group-titles.ts';
import { commandsOf } from '../../src/cmd/commands.ts';
import { MODULES } from '../../src/dialects/modules.ts';
import { manifestsOf } from '../../src/install/manifests.ts';
import { apiVersionOf, type KubeObject, nodes } from '../../src/kube/resources.ts';
import { controllerOf } from '../scenes/controller.ts';
import { type Actor, Stage } from '../scenes/stage.ts';
import { toy } from './toy-dialect.ts';
import { toyModule } from './toy-module.ts';

/** Stands in for the edit of `MODULES`. */
const COMMANDS = await commandsOf([...MODULES, toyModule]);
const NODES = ['a', 'b', 'c'];
/** The second of a scene in which the plan is created. */
const BEGIN = 60;
/** Words that are true of other products only. */
const FOREIGN =
  /k0s|autopilot|rancher|cattle|\bJob\b|system-upgrade|kubeadm|capi\b|cluster api|machine|refit-controller/i;

const studio: Actor = controllerOf({
  component: 'toy',
  dialects: [toy],
  lease: { namespace: 'default', name: 'toy' },
});

/** How the paint of each node dries. A node without an entry does not answer. */
type Answers = Record<string, 'dry' | 'cracked'>;

function painter(answers: Answers): Actor {
  return async ({ client }) =>
    await Promise.resolve({
      tick: async () => {
        for (const { metadata } of (await client.list(nodes)).items) {
          const paint = metadata.annotations?.['paint'] ?? '';
          const answer = answers[metadata.name];
          if (paint.split(' ').length !== 3 || answer === undefined) continue;
          const annotations = { paint: `${paint} ${answer}` };
          const patch = { metadata: { annotations } };
          await client.patch(nodes, metadata.name, patch, { type: 'merge' });
        }
      },
    });
}

type Painting = KubeObject & { readonly data: Readonly<Record<string, string>> };

function paintingOf(colour: string): Painting {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'painting', namespace: 'default' },
    data: { colour, first: 'a', rest: 'b c', atOnce: '1', record: '' },
  };
}

/** Starts a cluster with a new plan of the toy. `refit` returns what a command says, without the UID of the plan. */
async function openStudio(answers: Answers) {
  const directory = await mkdtemp(join(tmpdir(), 'refit-toy-'));
  const stage = await Stage.open(directory, COMMANDS);
  onTestFinished(async () => {
    await stage[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });
  for (const name of NODES) {
    await stage.create(nodes, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name },
      status: {
        conditions: [{ type: 'Ready', status: 'True' }],
        nodeInfo: { kubeletVersion: 'white', operatingSystem: 'linux', architecture: 'amd64' },
      },
    });
  }
  await stage.start(studio);
  await stage.start(painter(answers));
  await stage.waitUntil(BEGIN);
  await stage.create<KubeObject>(toy.plans, paintingOf('blue'));
  return {
    wait: async (seconds: number) => await stage.wait(seconds),
    path: (name: string) => stage.path(name),
    /** Runs a command about the plan. Fails if the command says anything that is true of another product only. */
    refit: async (line: string): Promise<string> => {
      const text = (await stage.answer(...line.split(' '))).replaceAll(/ +\(0{8}-[-0-9]+\)/g, '');
      expect(text).not.toMatch(FOREIGN);
      return text;
    },
    refitAlone: async (line: string): Promise<string> =>
      await stage.answerAlone(...line.split(' ')),
  };
}

test('commands that read show a running plan of the fifth dialect', async () => {
  const { wait, refit } = await openStudio({ a: 'dry' });
  await wait(2);
  expect(await refit('status')).toBe(`ConfigMap default/painting  running 1/3 for 2 s, 33 %  to blue
  controllers  1/1  ●
  workers      0/2  ◐○
  NODE  STATE      FOR  MESSAGE
  b     signalled  1 s  its work has not begun yet
  c     next
  waits   1 worker queued (1 at a time) (1 s)
`);
  const why = await refit('why');
  expect(why).toContain(
    '  note    the studio carries it out; this command cannot see whether it is running\n',
  );
  expect(why).toContain('  you can refit pause --plan toy/default/painting, refit abort --plan');
  expect(await refit('preview')).toBe(`ConfigMap default/painting  running
  controllers to blue, 1 at a time, 1 done
  workers to blue, 1 at a time
    now      b
    batch 1  c
  waits    b is signalled; its work has not begun yet (Signalled)
  waits    1 worker queued (1 at a time) (NoFreeSlot)
`);
});

test('commands that read give the advice of the fifth dialect about its failed plan', async () => {
  const { wait, refit } = await openStudio({ a: 'dry', b: 'cracked' });
  await wait(7);
  const advice =
    'Failed. Fix the cause (see the wall), then run: refit retry b --plan toy/default/painting';
  expect(await refit('status')).toContain(`\n  to do   ${advice}\n`);
  expect(await refit('why')).toContain(`\n  to do   ${advice}\n`);
  expect(await refit('why b')).toContain(`\n  to do   ${advice}\n`);
  expect(await refit('report -o markdown')).toContain(`\n## to do\n\n* ${advice}\n`);
  expect(await refit('history')).toBe(`ConfigMap default/painting
  2026-11-20T08:01:00Z  failed 1/3 after 2 s, 5 s ago  to blue
      b: the paint is cracked (TargetFailed)
`);
});

test('refit replay explains the file of a turn of the fifth dialect', async () => {
  const { wait, refit, refitAlone, path } = await openStudio({ a: 'dry' });
  await wait(2);
  await refit(`why --dump ${path('turn.json')}`);
  const replayed = await refitAlone(`replay ${path('turn.json')}`);
  expect(replayed).toContain('\n  note    the studio carries it out;');
  expect(replayed).toMatch(/said and decided the same\.\n$/);
  expect(replayed).not.toMatch(FOREIGN);
});

test('a plan of the fifth dialect can be paused and resumed, and a node of it held', async () => {
  const { wait, refit } = await openStudio({ a: 'dry', b: 'dry', c: 'dry' });
  expect(await refit('pause')).toBe(`ConfigMap default/painting is paused.
In progress, will finish: a signalled (0 s): its work has not begun yet.
No new node starts until \`refit resume\`.
`);
  await wait(2);
  expect(await refit('hold c --reason visitors')).toBe(
    'c is held by anna until refit unhold c: visitors. No plan starts on it; work in progress finishes.\n',
  );
  const paused = await refit('status');
  expect(paused).toContain('ConfigMap default/painting  running 1/3 for 2 s, 33 %, paused');
  expect(paused).toContain('\n  held    c is held by anna: visitors (ends with refit unhold c)\n');
  expect(await refit('resume')).toBe('ConfigMap default/painting continues.\nNext: b.\n');
  await wait(5);
  expect(await refit('status')).toContain('ConfigMap default/painting  running 2/3');
  expect(await refit('unhold c')).toBe('c is not held any more: plans may start on it.\n');
  await wait(3);
  expect(await refit('status')).toContain('ConfigMap default/painting  done 3/3');
});

test('a failed node of the fifth dialect can be tried again', async () => {
  const answers: Answers = { a: 'dry', b: 'cracked', c: 'dry' };
  const { wait, refit } = await openStudio(answers);
  await wait(5);
  expect(await refit('retry b')).toBe(`b of ConfigMap default/painting will be tried again.
It starts when the nodes before it have started, its gates pass and the failure budget allows it.
`);
  answers['b'] = 'dry';
  await wait(5);
  expect(await refit('status')).toContain('ConfigMap default/painting  done 3/3');
});

test('the advice after an abort is that of the fifth dialect', async () => {
  const { wait, refit } = await openStudio({ a: 'dry' });
  await refit('pause');
  await wait(2);
  expect(await refit('abort --reason rain')).toBe(`ConfigMap default/painting is aborted: rain.
No node is in progress.
The plan ends as failed.
`);
  await wait(2);
  const again = 'to start again: clear the record of painting';
  expect(await refit('status')).toContain(`\n  to do   Aborted. ${again.replace('t', 'T')}.`);
  expect(await refit('retry b')).toContain(again);
});

test('refit rollback refuses a plan of the fifth dialect, and says what its module says', async () => {
  const { wait, refit } = await openStudio({ a: 'dry', b: 'cracked' });
  await wait(5);
  expect(await refit('rollback --reason ugly')).toBe(
    'REFIT_CONTROL: refit rollback does not write plans of this dialect: scrape the paint off (do that instead: see docs/roll-back.md in the repository of Refit)',
  );
});

test('refit validate judges a plan of the fifth dialect by its module', async () => {
  const { refitAlone, path } = await openStudio({});
  const { data, ...painting } = paintingOf('beige');
  await writeFile(path('good.yaml'), JSON.stringify({ ...painting, data }));
  expect(await refitAlone(`validate ${path('good.yaml')}`)).toBe(
    `DIR/good.yaml: painting painting can be painted
DIR/good.yaml: warning: data.colour: nobody sees beige
`,
  );
  await writeFile(path('bad.yaml'), JSON.stringify({ ...painting, data: {} }));
  expect(await refitAlone(`validate ${path('bad.yaml')}`)).toContain(
    'DIR/bad.yaml: data.colour: is missing',
  );
});

test('refit validate says which fields of a policy have an effect in the fifth dialect', async () => {
  const { refitAlone, path } = await openStudio({});
  const spec = {
    retry: { attempts: 3 },
    soak: '1m',
    drain: { order: 'PriorityClass' },
  };
  const policy = {
    apiVersion: apiVersionOf(upgradePolicies),
    kind: upgradePolicies.kind,
    metadata: { name: 'p' },
  };
  await writeFile(path('policy.yaml'), JSON.stringify({ ...policy, spec }));
  const told = await refitAlone(`validate ${path('policy.yaml')}`);
  expect(told).toContain('spec.soak has no effect on plans of toy: paint dries');
  expect(told).not.toContain('spec.retry has no effect on plans of toy');
  await writeFile(path('all.yaml'), JSON.stringify({ ...policy, spec: { drain: spec.drain } }));
  expect(await refitAlone(`validate ${path('all.yaml')}`)).toContain(
    'spec.drain.order: ignored by a node with wet paint. The leader does not drain nodes with wet paint\n',
  );
});

test('refit install prints the manifests of the folders that the fifth dialect names', async () => {
  const { refitAlone } = await openStudio({});
  expect(await refitAlone('install easel')).toBe(manifestsOf(['base'], {}));
  const help = await refitAlone('install --help');
  expect(help).toMatch(/easel \[options\] +Prints the manifests of the easel for paintings/);
  expect(await refitAlone('uninstall --help')).toMatch(/easel \[options\] +Removes the easel for/);
});

test('refit uninstall keeps the component of the fifth dialect while its plan runs', async () => {
  const { refit } = await openStudio({});
  expect(await refit('uninstall easel')).toMatch(
    /^REFIT_INSTALL: ConfigMap default\/painting has not ended/,
  );
});

test('the help lists the commands of the fifth dialect, and runs them', async () => {
  const groupOf = (command: string) => COMMANDS.find(({ name }) => name === command)?.group;
  expect(groupOf('studio')).toBe(GROUP_TITLES.run);
  expect(groupOf('mix')).toBe(GROUP_TITLES.control);
  const { refitAlone } = await openStudio({});
  expect(await refitAlone('--help')).toMatch(/\n {2}mix +Mixes paint\.\n/);
  expect(await refitAlone('mix')).toBe('the paint is mixed\n');
});
