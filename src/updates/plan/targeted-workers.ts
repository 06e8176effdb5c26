/** Finds the workers that the Plans of an UpdateConfig upgrade. */
import type { Node } from '../../kube/resources.ts';
import { nodeFields, parseFieldSelector, parseLabelSelector } from '../../kube/selectors.ts';
import type { UpdateSettings } from '../config/read-config.ts';

type Selected = Pick<UpdateSettings, 'commands'>;

/** All of them without a planSpec. A list of names wins over a selector, as in a Plan. */
export function targetedWorkers(all: readonly Node[], { commands }: Selected): readonly Node[] {
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
