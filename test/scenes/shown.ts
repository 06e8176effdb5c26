/** Shows everything that people can see of the plans of a cluster. */
import { writeFile } from 'node:fs/promises';
import { plans } from '../../src/api/autopilot/plan.ts';
import { cattlePlans, nodeRollouts, upgradePolicies } from '../../src/api/kinds.ts';
import { events, type KubeObject, nodes, type Resource } from '../../src/kube/resources.ts';
import { pageOf } from './page.ts';
import type { Stage } from './stage.ts';

/**
 * Shows each surface: tables of kubectl, Events, the record, every command of `refit` that reads, the page, and what the
 * leader wrote and told.
 */
export async function showAll(
  stage: Stage,
  shownPlans: Resource,
  about: readonly string[],
): Promise<void> {
  await stage.get(shownPlans, 'wide');
  await stage.get(nodeRollouts, 'wide');
  const policies = await stage.client.list(upgradePolicies);
  if (policies.items.length > 0) await stage.get(upgradePolicies, 'wide');
  stage.note('# Nodes that are cordoned', (await cordoned(stage)).join('\n'));
  stage.note('# Events', (await eventLines(stage)).join('\n'));
  stage.note('# Status of the NodeRollouts', await records(stage));
  await stage.refit('status', '-o', 'wide');
  await stage.refit('why');
  for (const name of about) {
    await stage.refit('why', name);
    await stage.refit('logs', name);
  }
  await stage.refit('preview');
  await stage.refit('history');
  await stage.refit('report', '-o', 'markdown');
  await stage.refitJson('status');
  stage.noteJson(
    '# State that the page of refit dashboard gets',
    JSON.stringify(await pageOf(stage)),
  );
  stage.note('# Messages of the leader to people', stage.journal.messages.join('\n'));
  stage.note('# Writes of the leader', stage.journal.writes.join('\n'));
  await validateApplied(stage);
}

type Applied = KubeObject & { readonly spec?: unknown };

/** Validates the Plans and the policies of the cluster as the file that a person has applied. */
async function validateApplied(stage: Stage): Promise<void> {
  const kinds: readonly Resource[] = [plans, cattlePlans, upgradePolicies];
  const lists = await Promise.all(
    kinds.map(async (resource) => (await stage.client.list(resource)).items),
  );
  const applied = lists.flat().map((object) => {
    const { apiVersion, kind, metadata, spec } = object as Applied;
    const { name, namespace } = metadata;
    return JSON.stringify({ apiVersion, kind, metadata: { name, namespace }, spec });
  });
  if (applied.length === 0) return;
  const path = stage.path('applied.yaml');
  await writeFile(path, applied.join('\n---\n'));
  await stage.refitAlone('validate', path);
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
