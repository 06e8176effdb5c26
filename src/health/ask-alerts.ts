/** Asks Prometheus or Alertmanager whether alerts fire. */
import { isRecord } from '../util/json.ts';
import { ownMember } from '../util/own-member.ts';
import { apiUrl, type CheckTools, jsonFrom } from './ask-server.ts';
import type { AlertCheck, CheckFinding } from './checks.ts';
import { clipped, firstOf, type Labels, labelsIn, shownLabels } from './series.ts';

const NAME = 'alertname';

export async function askAlerts(
  check: AlertCheck,
  tools: CheckTools,
  abort: AbortSignal,
): Promise<CheckFinding> {
  const firing =
    check.source === 'prometheus'
      ? await firingInPrometheus(check, tools, abort)
      : await activeInAlertmanager(check, tools, abort);
  const wanted = Object.entries(check.labels);
  const found = firing.filter((labels) =>
    wanted.every(([name, value]) => ownMember(labels, name) === value),
  );
  if (found.length === 0)
    return { state: 'passing', message: `no alert with ${shownLabels(check.labels)} fires` };
  const what = found.length === 1 ? 'an alert fires' : `${found.length} alerts fire`;
  return { state: 'failing', message: `${what}: ${firstOf(found.map(nameOf).toSorted())}` };
}

/** Returns for example `EtcdSlow with job=etcd, severity=critical`. */
function nameOf(labels: Labels): string {
  const shown = shownLabels(labels, [NAME]);
  return `${clipped(labels[NAME] ?? 'an alert without a name')}${shown && ` with ${shown}`}`;
}

/** Resolves with the labels of the alerts that fire. A pending alert does not fire yet. */
async function firingInPrometheus(
  { url, secretName }: AlertCheck,
  tools: CheckTools,
  abort: AbortSignal,
): Promise<Labels[]> {
  const address = apiUrl(url, '/api/v1/alerts');
  const answer = await jsonFrom(address, secretName, tools, abort);
  const data = isRecord(answer) && answer['status'] === 'success' ? answer['data'] : undefined;
  const alerts = isRecord(data) ? data['alerts'] : undefined;
  if (!Array.isArray(alerts)) throw new Error(`${address.host} did not answer like Prometheus`);
  return alerts
    .filter((each: unknown) => isRecord(each) && each['state'] === 'firing')
    .map((each) => labelsIn((each as Readonly<Record<string, unknown>>)['labels']));
}

/**
 * Resolves with the labels of the active alerts. Alertmanager itself selects the alerts, because it may have thousands
 * of them. A silenced or inhibited alert does not count.
 */
async function activeInAlertmanager(
  { url, secretName, labels }: AlertCheck,
  tools: CheckTools,
  abort: AbortSignal,
): Promise<Labels[]> {
  const address = apiUrl(url, '/api/v2/alerts', [
    ['active', 'true'],
    ['silenced', 'false'],
    ['inhibited', 'false'],
    ...Object.entries(labels).map(
      ([name, value]) => ['filter', `${name}=${JSON.stringify(value)}`] as const,
    ),
  ]);
  const answer = await jsonFrom(address, secretName, tools, abort);
  if (!Array.isArray(answer)) throw new Error(`${address.host} did not answer like Alertmanager`);
  return answer
    .filter((each: unknown) => !isRecord(each) || !isMuted(each['status']))
    .map((each: unknown) => labelsIn(isRecord(each) ? each['labels'] : undefined));
}

function isMuted(status: unknown): boolean {
  return isRecord(status) && status['state'] === 'suppressed';
}
