/** Shows everything that people can see of the plans of a cluster. */
import { nodeRollouts, upgradePolicies } from '../../src/api/kinds.ts';
import { events, nodes, type Resource } from '../../src/kube/resources.ts';
import type { Stage } from './stage.ts';

/** Shows each surface: tables of kubectl, Events, the record, and every command of `refit` that reads. */
export async function showAll(
  stage: Stage,
  plans: Resource,
  about: readonly string[],
): Promise<void> {
  await stage.get(plans, 'wide');
  await stage.get(nodeRollouts, 'wide');
  const policies = await stage.client.list(upgradePolicies);
  if (policies.items.length > 0) await stage.get(upgradePolicies, 'wide');
  stage.note('# Nodes that are cordoned', (await cordoned(stage)).join('\n'));
  stage.note('# Events', (await eventLines(stage)).join('\n'));
  stage.note('# Status of the NodeRollouts', await records(stage));
  await stage.refit('status', '-o', 'wide');
  await stage.refit('why');
  for (const name of about) await stage.refit('why', name);
  await stage.refit('preview');
  await stage.refit('history');
  await stage.refit('report', '-o', 'markdown');
}

async function cordoned(stage: Stage): Promise<string[]> {
  const { items } = await stage.client.list(nodes);
  return items.flatMap(({ metadata, spec }) => (spec?.unschedulable === true ? metadata.name : []));
}

async function eventLines(stage: Stage): Promise<string[]> {
  const { items } = await stage.client.list(events);
  return items.map(({ type, reason, message, count = 1, involvedObject: { kind, name } }) => {
    const times = count === 1 ? '' : ` (${count} times)`;
    return `${type} ${reason} ${kind}/${name}: ${message}${times}`;
  });
}

async function records(stage: Stage): Promise<string> {
  const { items } = await stage.client.list(nodeRollouts);
  return items.map(({ status }) => JSON.stringify(status ?? {}, undefined, 1)).join('\n');
}
