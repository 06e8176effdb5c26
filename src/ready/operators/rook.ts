/** Judges the clusters of Ceph that Rook runs. */
import { isRecord } from '../../util/json.ts';
import { listed } from '../../util/phrases.ts';
import { printable } from '../../util/printable.ts';
import { scalarText } from '../../util/scalar-text.ts';
import { type Judge, type Operator, of, unclear } from './operator.ts';

const MOST_REASONS = 3;

export const ROOK: Operator = {
  name: 'Rook',
  resource: of('ceph.rook.io/v1', 'CephCluster'),
  noun: 'cluster',
  expect:
    'it lets the OSDs of one failure domain go at a time, and blocks the others until the placement groups are clean',
  judgeOf: async () => await Promise.resolve(judge),
};

const judge: Judge = ({ status: { ceph } }) => {
  const health = isRecord(ceph) ? ceph['health'] : undefined;
  const why = cephReasons(ceph);
  switch (health) {
    case 'HEALTH_OK':
      return undefined;
    case 'HEALTH_ERR':
      return {
        state: 'blocker',
        message: `Ceph reports HEALTH_ERR${why}`,
        cure: 'repair Ceph first',
      };
    case 'HEALTH_WARN':
      return {
        state: 'warning',
        message: `Ceph reports HEALTH_WARN${why}: if placement groups are not clean, its budgets let no further node go`,
        cure: 'read `ceph health detail` first',
      };
    default:
      return unclear('whether Ceph is healthy: its status has no health that Refit knows');
  }
};

/** Returns the health checks of Ceph that fail, in parentheses. Rook writes them into the status, each with its message. */
function cephReasons(ceph: unknown): string {
  const details = isRecord(ceph) && isRecord(ceph['details']) ? ceph['details'] : {};
  const reasons = Object.entries(details).map(([code, detail]) => {
    const message = isRecord(detail) ? scalarText(detail['message']) : '';
    return printable(message === '' ? code : `${code}: ${message}`);
  });
  return reasons.length === 0 ? '' : ` (${listed(reasons, MOST_REASONS)})`;
}
