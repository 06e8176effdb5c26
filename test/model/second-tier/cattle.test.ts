/** Explores the larger Plans of Rancher, which take too long for the first tier. */
import { LARGE_CATTLE_CONFIGURATIONS } from '../cattle/configurations.ts';
import { testCattleConfigurations } from '../cattle/explored-cattle.ts';

testCattleConfigurations(LARGE_CATTLE_CONFIGURATIONS);
