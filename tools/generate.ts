/** Runs `npm run generate`: writes the CRDs, the manifests of the chart and the reference pages from the source. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { checkStructural } from './crds/check-structural.ts';
import { type DefinedKind, structural } from './crds/definition.ts';
import { CUSTOM_KINDS } from './crds/registry.ts';
import { crdYaml, deployFiles } from './deploy/manifests.ts';
import { fileOf } from './deploy/objects.ts';
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

if (import.meta.main) {
  const root = new URL('../', import.meta.url);
  for (const [path, text] of await generatedFiles()) {
    const file = new URL(path, root);
    mkdirSync(dirname(file.pathname), { recursive: true });
    writeFileSync(file, text);
    console.log(path);
  }
}
