/** Explores the larger configurations, which take too long for the first tier. */
import { CONFIGURATIONS } from '../configurations.ts';
import { isOfFirstTier, testConfigurations } from '../explored.ts';

testConfigurations(CONFIGURATIONS.filter((each) => !isOfFirstTier(each)));
