/** Runs `npm run generate`: writes the CRDs, the manifests of the chart and the reference pages from the source. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { EXIT, RefitError } from '../src/util/errors.ts';
import { checkStructural } from './crds/check-structural.ts';
import { type DefinedKind, structural } from './crds/definition.ts';
import { CUSTOM_KINDS } from './crds/registry.ts';
import { crdYaml, deployFiles } from './deploy/manifests.ts';
import { fileOf } from './deploy/objects.ts';
import { minorOf } from './facts/minors.ts';
import { readSources } from './facts/read.ts';
import { pathOf, render } from './facts/render.ts';
import { runMain } from './main.ts';
import { adviceReference } from './reference/advice.ts';
import { crdReference } from './reference/crds.ts';
import { errorReference } from './reference/errors.ts';
import { featureReference } from './reference/features.ts';
import { metricReference } from './reference/metrics.ts';
import { policyEffectReference } from './reference/policy-effects.ts';
import { reasonReference } from './reference/reasons.ts';
import { testedReference } from './reference/tested.ts';

/** Every generated file: its path from the root of the repository, and its text. A test compares them with the tree. */
export async function generatedFiles(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ...CUSTOM_KINDS.map((kind): [string, string] => [crdPath(kind), definitionText(kind)]),
    ...deployFiles(),
    ['docs/reference/advice.md', adviceReference()],
    ['docs/reference/crds.md', crdReference(CUSTOM_KINDS)],
    ['docs/reference/errors.md', errorReference()],
    ['docs/reference/features.md', featureReference()],
    ['docs/reference/metrics.md', await metricReference()],
    ['docs/reference/policy-effects.md', policyEffectReference()],
    ['docs/reference/reasons.md', reasonReference()],
    ['docs/reference/tested.md', testedReference()],
  ]);
}

function crdPath({ resource }: DefinedKind): string {
  return `deploy/crds/${resource.group}_${resource.plural}.yaml`;
}

function definitionText(kind: DefinedKind): string {
  checkStructural(structural(kind.schema));
  return fileOf('src/api', [crdYaml(kind)]);
}

const HELP = `Usage: npm run generate [-- minor 1.NN…]

Writes the CRDs, the manifests of the chart and the reference pages from the source. With "minor", it writes the facts of
these minor versions of Kubernetes instead, from the sources of Kubernetes. That needs Go, and minutes for each version.

  --help   this text
`;

/** Writes the files, and prints their paths. */
async function main(args: string[], abort: AbortSignal): Promise<number> {
  if (args.includes('--help')) {
    process.stdout.write(HELP);
    return EXIT.ok;
  }
  const [command, ...names] = args;
  if (command === undefined) {
    for (const [path, text] of await generatedFiles()) write(path, text);
    return EXIT.ok;
  }
  if (command !== 'minor' || names.length === 0)
    throw new RefitError(
      'REFIT_USAGE',
      `nothing or "minor 1.NN" must follow "generate", found "${args.join(' ')}"`,
    );
  const log = (line: string): void => void process.stderr.write(`${line}\n`);
  const options = { environment: process.env, log, now: () => performance.now(), abort };
  for (const minor of names.map(minorOf))
    write(pathOf(minor), render(minor, await readSources(minor, options)));
  return EXIT.ok;
}

function write(path: string, text: string): void {
  const file = new URL(path, new URL('../', import.meta.url));
  mkdirSync(dirname(file.pathname), { recursive: true });
  writeFileSync(file, text);
  console.log(path);
}

if (import.meta.main) await runMain(main);
