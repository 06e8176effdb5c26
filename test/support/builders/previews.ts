/** Previews of one plan on a small cluster, and their text. */
import type { UpgradePolicy } from '../../../src/api/refit/upgrade-policy.ts';
import { previewNew } from '../../../src/cli/preview/preview-command.ts';
import { type PlanPreview, renderPreview } from '../../../src/cli/preview/view.ts';
import type { AskControlPlane, Sources } from '../../../src/cli/status/inspection-sources.ts';
import { autopilot } from '../../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { jobs, type KubeObject, type Node, nodes } from '../../../src/kube/resources.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import { later, T0 } from '../clock/times.ts';
import { DIALECTS } from './dialects.ts';
import { buildControlNode, buildNode } from './nodes.ts';
import { buildPlan, buildUpdate, listed } from './plans.ts';
import { buildViewParts, READY } from './views.ts';
import { buildWorldOf } from './worlds-of-kinds.ts';

export const names = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `w${index + 1}`);

export const targets = {
  controllers: listed('c1', 'c2'),
  workers: { ...listed(...names(3)), limits: { concurrent: 2 } },
};

export const plan = buildPlan({ commands: [{ k0supdate: buildUpdate({ targets }) }] });

const controllers = [buildControlNode('c1'), buildControlNode('c2')];

export const workers = names(3).map((name) => buildNode(name));

/** Returns the text of a preview for a cluster that has a leader. */
export function textOf(...plans: readonly PlanPreview[]): string {
  return renderPreview({ leader: { state: 'held', holder: 'a', since: later(0) }, plans }, T0);
}

export async function preview(
  name: string,
  file: KubeObject,
  workers: readonly Node[],
  ask: AskControlPlane = READY,
  present: readonly KubeObject[] = [],
): Promise<PlanPreview> {
  const dialect = DIALECTS.find((each) => each.name === name);
  if (!dialect) throw new Error(`no dialect ${name}`);
  const world = buildWorldOf([nodes, workers], [controlNodes, controllers], [jobs, []]);
  return await previewNew(
    file,
    { dialect, plans: () => present, world },
    buildViewParts({ controlPlane: ask }),
    T0,
  );
}

interface Surroundings {
  readonly sources?: Partial<Sources>;
  readonly policies?: readonly UpgradePolicy[];
  readonly workers?: readonly Node[];
  readonly file?: KubeObject;
}

export async function previewIn({
  sources,
  policies,
  workers: hosts = workers,
  file = plan,
}: Surroundings): Promise<PlanPreview> {
  const world = buildWorldOf([nodes, hosts], [controlNodes, controllers], [jobs, []]);
  const parts = buildViewParts(sources, policies);
  return await previewNew(file, { dialect: autopilot, plans: () => [], world }, parts, T0);
}
