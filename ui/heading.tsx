/** The head of the page: the cluster, the versions of the shown plan, and the zone of all times. */
import { useEffect, useMemo } from 'preact/hooks';
import type { NodeState, PagePlan } from '../src/cli/dashboard/state.ts';
import { zoneOfViewer } from './times.tsx';

interface HeadingProps {
  readonly cluster: string | undefined;
  readonly plan: PagePlan | undefined;
}

/** Also writes the progress and the cluster into the title of the tab, so that people find it among others. */
export function Heading({ cluster, plan }: HeadingProps) {
  const nodes = plan?.nodes;
  const present = useMemo(() => presentOf(nodes ?? []), [nodes]);
  const progress = plan === undefined ? undefined : `${plan.done}/${plan.total}`;
  const title = [progress, cluster, 'Refit'].filter(Boolean).join(' · ');
  useEffect(() => {
    document.title = title;
  }, [title]);
  const change = [present, plan?.versions].filter(Boolean).join(' → ');
  return (
    <div class="heading">
      <h1>Refit</h1>
      {cluster !== undefined && <strong>{cluster}</strong>}
      {change !== '' && <span>{change}</span>}
      {plan?.creator !== undefined && <span>started by {plan.creator}</span>}
      <span>Times: {zoneOfViewer()}</span>
    </div>
  );
}

/** The maximum number of versions that the page names. */
const MOST = 3;

/** Returns the versions that the nodes had before the plan; empty if none is known. */
function presentOf(nodes: readonly NodeState[]): string {
  const versions = [...new Set(nodes.flatMap(({ from }) => from ?? []))];
  const more = versions.length > MOST ? [`${versions.length - MOST} more`] : [];
  return [...versions.slice(0, MOST), ...more].join(', ');
}
