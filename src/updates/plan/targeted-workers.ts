/** Finds the workers that the Plans of an UpdateConfig upgrade. */
import type { Node } from '../../kube/resources.ts';
import { nodeFields, parseFieldSelector, parseLabelSelector } from '../../kube/selectors.ts';
import { virtualBy } from '../../kube/virtual-nodes.ts';
import type { UpdateSettings } from '../config/read-config.ts';

type Selected = Pick<UpdateSettings, 'commands'>;

/**
 * Returns the Nodes of the selected workers. Without a planSpec these are all hosts, but no virtual Node, because no upgrade
 * changes its version. A list of names takes precedence over a selector, as in a Plan.
 */
export function targetedWorkers(fleet: readonly Node[], { commands }: Selected): readonly Node[] {
  const all = fleet.filter((node) => virtualBy(node) === undefined);
  if (commands === undefined) return all;
  const matchers = commands.map(({ k0supdate }): ((node: Node) => boolean) => {
    const { static: listed, selector } = k0supdate?.targets.workers?.discovery ?? {};
    if (listed) return ({ metadata }) => listed.nodes?.includes(metadata.name) === true;
    if (!selector) return () => false;
    const byLabels = parseLabelSelector(selector.labels ?? '');
    const byFields = parseFieldSelector(selector.fields ?? '', nodeFields);
    return (node) => byLabels(node) && byFields(node);
  });
  return all.filter((node) => matchers.some((matches) => matches(node)));
}
