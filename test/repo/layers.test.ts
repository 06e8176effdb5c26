/** Tests that files import only from lower layers, that there are no cycles, and that the agent stays one small file. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DIALECT_NAMES } from '../../src/api/refit/upgrade-policy.ts';
import {
  BELOW,
  ENGINE_ORDER,
  importCycles,
  importsAgainstTurn,
  importsBesideReading,
  loadedWith,
  packagesOfAgent,
  quotedDialects,
  undeclaredPackages,
  upwardImports,
  valuesInContract,
} from './layers.ts';
import { filesOf, productFiles, ROOT, sourceFile } from './tree.ts';

const files = productFiles();
const dependencies = Object.keys(
  (JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { dependencies: object })
    .dependencies,
);

test('imports point downward only, and never out of src/', () => {
  expect(upwardImports(files)).toEqual([]);
});

test('the sandbox, tools, tests and the benchmark import only what lies below them', () => {
  const beside = filesOf('{sandbox,tools,test,bench}/**/*.ts', 'src/**/*.test.ts', 'ui/**/*.tsx');
  expect(beside.length).toBeGreaterThan(0);
  expect(upwardImports(beside)).toEqual([]);
});

test('the page in ui/ imports only types of the product', () => {
  const loaded = filesOf('ui/**/*.tsx').flatMap(({ imports }) =>
    imports.filter(({ path, typeOnly }) => path?.startsWith('src/') === true && !typeOnly),
  );
  expect(loaded).toEqual([]);
});

test('there is a rule for each layer, and none for layers that do not exist', () => {
  const top = readdirSync(`${ROOT}src`);
  const inProducts = files.flatMap(({ path }) => {
    const [, folder, product, inner, file] = path.split('/');
    if (folder !== 'dialects' || file === undefined || product === 'shared') return [];
    return [`dialects/*/${inner}`];
  });
  const inOthers = ['cli/contract', 'dialects/*', 'dialects/shared'];
  const layers = new Set([...top, ...inOthers, ...inProducts]);
  expect(Object.keys(BELOW).toSorted()).toEqual([...layers].toSorted());
});

test.each([
  ['kube imports runtime', 'src/kube/a.ts', "import { b } from '../runtime/b.ts';"],
  [
    'engine imports a dialect, as a type',
    'src/engine/a.ts',
    "import type { B } from '../dialects/x/b.ts';",
  ],
  [
    'one product imports another',
    'src/dialects/x/plan/a.ts',
    "import { b } from '../../y/plan/b.ts';",
  ],
  [
    "a product's agent imports its plan",
    'src/dialects/x/agent/a.ts',
    "import { b } from '../plan/b.ts';",
  ],
  [
    "a product's host imports the engine",
    'src/dialects/x/host/a.ts',
    "import { b } from '../../../engine/b.ts';",
  ],
  ['the cli imports a dialect', 'src/cli/a.ts', "import { b } from '../dialects/x/plan/b.ts';"],
  [
    'the cli imports the modules, as a type',
    'src/cli/a.ts',
    "import type { B } from '../dialects/modules.ts';",
  ],
  [
    'composition loads a dialect later',
    'src/composition/a.ts',
    "const b = await import('../dialects/x/module.ts');",
  ],
  [
    'cmd imports more of a dialect than its module',
    'src/cmd/a.ts',
    "const b = await import('../dialects/x/command/b.ts');",
  ],
  ['the agent imports schemas', 'src/agent/a.ts', "export { b } from '../api/b.ts';"],
  ['cmd imports the sandbox', 'src/cmd/a.ts', "const b = await import('../../sandbox/b.ts');"],
  ['src imports a test', 'src/util/a.ts', "import '../../test/b.ts';"],
  ['a tool imports the sandbox', 'tools/a.ts', "import { b } from '../sandbox/b.ts';"],
  ['the sandbox imports a test', 'sandbox/a/a.ts', "import { b } from '../../test/b.ts';"],
  ['a helper of tests imports the benchmark', 'test/a.ts', "import { b } from '../bench/b.ts';"],
  ['a test imports the benchmark', 'test/a.test.ts', "import { b } from '../bench/b.ts';"],
  [
    'a test of a tool imports the benchmark',
    'tools/a.test.ts',
    "import { b } from '../bench/b.ts';",
  ],
  ['a new folder in src', 'src/stuff/a.ts', ''],
  ['a new folder at the top', 'stuff/a.ts', ''],
  ['over several lines', 'src/signal/a.ts', "import {\n  b,\n  c,\n} from '../engine/b.ts';"],
])('%s: found', (_, path, text) => {
  expect(upwardImports([sourceFile(path, text)])).toHaveLength(1);
});

test('a test beside the code that it tests may import what every test may, and its neighbours', () => {
  const text = "import { a } from '../test/support/a.ts';\nimport { b } from './b.ts';";
  const tests = ['tools/b.test.ts', 'sandbox/b.test.ts', 'bench/b.test.ts'];
  expect(upwardImports(tests.map((path) => sourceFile(path, text)))).toEqual([]);
});

test('an import downward, a package and a module of Node are allowed', () => {
  const text =
    "import { a } from '../engine/a.ts';\nimport z from 'zod';\nimport { join } from 'node:path';";
  expect(upwardImports([sourceFile('src/dialects/x.ts', text)])).toEqual([]);
});

test('no file of the CLI quotes the name of a dialect', () => {
  expect(quotedDialects(files, DIALECT_NAMES)).toEqual([]);
});

test('a file of the CLI that asks whether a plan is of k0s is found', () => {
  const planted = [
    sourceFile('src/cli/a.ts', "const isK0s = dialect === 'autopilot';"),
    sourceFile('src/dialects/autopilot/module.ts', "const name = 'autopilot';"),
  ];
  expect(quotedDialects(planted, DIALECT_NAMES)).toEqual([
    "src/cli/a.ts: const isK0s = dialect === 'autopilot';",
  ]);
});

test('the contract between the CLI and the dialects contains only types', () => {
  expect(valuesInContract(files)).toEqual([]);
});

test('a function in the contract of the CLI, and a contract that loads a file, are found', () => {
  const planted = [
    sourceFile('src/cli/contract/a.ts', 'export function b(): void {}'),
    sourceFile('src/cli/contract/c.ts', "import { d } from '../d.ts';\nexport type E = typeof d;"),
    sourceFile('src/cli/contract/f.ts', "import type { D } from '../d.ts';\nexport type G = D;"),
  ];
  expect(valuesInContract(planted)).toEqual(['src/cli/contract/a.ts', 'src/cli/contract/c.ts']);
});

const HEAVY = /\/(?:plan|command|hooks)\//;

test('the modules of all dialects load no plan, no command and no hook of a dialect', () => {
  const light = loadedWith('src/dialects/modules.ts', files);
  expect(light).toContain('src/dialects/autopilot/module.ts');
  expect(light.filter((path) => HEAVY.test(path))).toEqual([]);
});

test('a module that loads its plan at once is found, and one that loads it later is not', () => {
  const planted = [
    sourceFile(
      'src/dialects/modules.ts',
      "import { a } from './a/module.ts';\nimport { b } from './b/module.ts';",
    ),
    sourceFile('src/dialects/a/module.ts', "import { x } from './x.ts';"),
    sourceFile('src/dialects/a/x.ts', "import { d } from './plan/d.ts';"),
    sourceFile('src/dialects/b/module.ts', "const d = async () => await import('./plan/e.ts');"),
  ];
  const light = loadedWith('src/dialects/modules.ts', planted);
  expect(light.filter((path) => HEAVY.test(path))).toEqual(['src/dialects/a/plan/d.ts']);
});

test('each folder of the engine has a place in the order of one turn', () => {
  const folders = readdirSync(`${ROOT}src/engine`, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  expect([...ENGINE_ORDER].toSorted()).toEqual(folders.toSorted());
});

test('a folder of the engine imports none that comes later in a turn', () => {
  expect(importsAgainstTurn(files)).toEqual([]);
});

test('a snapshot that imports the commands of a turn: found', () => {
  const planted = sourceFile('src/engine/snapshot/a.ts', "import type { B } from '../turn/b.ts';");
  expect(importsAgainstTurn([planted])).toEqual([
    'src/engine/snapshot/a.ts imports src/engine/turn/b.ts',
  ]);
});

test('the commands that show plans import no code that decides, because the reading of a plan has everything', () => {
  expect(importsBesideReading(files)).toEqual([]);
});

test('the check of these commands finds an import of the assessment, and an import of only a type of a gate', () => {
  const text =
    "import { phaseOf } from '../../engine/assess/assess.ts';\nimport type { Gate } from '../../engine/gates/types.ts';\nimport { readPlan } from '../../engine/explain/plan-reading.ts';";
  expect(importsBesideReading([sourceFile('src/cli/why/a.ts', text)])).toEqual([
    'src/cli/why/a.ts imports src/engine/assess/assess.ts',
    'src/cli/why/a.ts imports src/engine/gates/types.ts',
  ]);
  expect(importsBesideReading([sourceFile('src/cli/preview/a.ts', text)])).toEqual([]);
});

test('no file imports itself through others', () => {
  expect(importCycles(files)).toEqual([]);
});

test('a cycle over three files: found', () => {
  const ring = ['a', 'b', 'c'].map((name, index, all) =>
    sourceFile(`src/util/${name}.ts`, `import type { X } from './${all[(index + 1) % 3]}.ts';`),
  );
  expect(importCycles(ring)).toEqual([
    'src/util/a.ts → src/util/b.ts → src/util/c.ts → src/util/a.ts',
  ]);
});

test('the agent loads no package but the YAML reader of the kubeconfig', () => {
  expect(packagesOfAgent(files)).toEqual([]);
});

test('a package two files away from the agent: found', () => {
  const planted = [
    sourceFile(
      'src/agent/a.ts',
      "import { b } from '../kube/b.ts';\nimport type { Z } from 'zod';",
    ),
    sourceFile(
      'src/kube/b.ts',
      "import { c } from './config/kubeconfig.ts';\nimport { d } from '../util/d.ts';",
    ),
    sourceFile('src/kube/config/kubeconfig.ts', "import { parse } from 'yaml';"),
    sourceFile('src/util/d.ts', "import { parse } from 'yaml';"),
  ];
  expect(packagesOfAgent(planted)).toEqual(['src/util/d.ts imports yaml']);
});

test('src/ uses only packages that are installed with it', () => {
  expect(undeclaredPackages(files, dependencies)).toEqual([]);
});

test('a development package: found', () => {
  const planted = [
    sourceFile('src/util/a.ts', "import { expect } from 'vitest';\nimport { parse } from 'yaml';"),
  ];
  expect(undeclaredPackages(planted, ['yaml'])).toEqual(['src/util/a.ts imports vitest']);
});
