/** Makes the JSON form of a status (docs/reference/cli.md). */
import { adviceJson } from '../advice/advice.ts';
import { jsonOf, type ShownStatus, type StatusJson } from './json-form.ts';

/** Returns the JSON form of a status. It has the advice in place of the situations and of the texts of the dialects. */
export function statusJson(status: ShownStatus): StatusJson {
  const plans = status.plans.map((plan) => {
    const { situations: _situations, ...rest } = plan;
    const advice = adviceJson(plan);
    return advice.length === 0 ? rest : { ...rest, advice };
  });
  return jsonOf({ ...status, plans });
}
